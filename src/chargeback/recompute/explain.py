"""The explanation of one stored amount, from the evidence of the revision that it belongs to.

The line is calculated once more and compared with what is stored. Where the evidence is no longer kept or damaged,
only what is stored is shown; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.day import Evidence
from chargeback.allocation.explain import PortionExplanation, explain_line
from chargeback.allocation.policies import UNKNOWN, PolicyCatalogue
from chargeback.errors import PluginError
from chargeback.model.inventory import UNALLOCATED
from chargeback.recompute.rules import CONFIGURED, AllocationRules, AppliedPolicies, AppliedPolicy
from chargeback.recompute.stored_day import (
    Explained,
    LineNotFound,
    LineRows,
    StoredDay,
    first,
    resource_name,
    where,
)
from chargeback.store.control.inventory_lists import IDENTITIES, ids_named, names_of
from chargeback.store.control.policies import used_policies
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS
from chargeback.store.tenant import TenantStore

#: The columns of a row that the calculation decides.
_CALCULATED: Final = ("amount", "identity_usage", "total_usage", "portion_share", "chain_position")


class PortionNeeded(LookupError):
    """The identity has rows of several portions of the line, so one of them must be named."""


@dataclass(frozen=True, slots=True)
class ExplainKey:
    """The share to explain: that of an identity in one line of a day, now or ``as_of`` an earlier instant.

    The default ``portion`` is the one with a row of the identity, else the first one.
    """

    day: date
    line_id: str
    identity_id: str
    portion: int | None = None
    as_of: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation(Explained):
    """Why an identity has an amount of a line, or why it has none. ``row`` has the columns of CHARGEBACKS.

    Attributes:
        key: what is explained.
        policy: None if it is not known.
        unknown: why the identity cannot be charged anything, if no identity has its id.
    """

    key: ExplainKey
    policy: AppliedPolicy | None
    unknown: str | None = None


@dataclass(frozen=True)
class TriedDay:
    """A day by other policies, those of the ``catalogue`` of that day, with the ``rows`` that they make of it."""

    catalogue: PolicyCatalogue
    rows: pa.Table

    def find(self, product_type: str) -> AppliedPolicy:
        """Return the policy by which the lines of a type are split."""
        matched = self.catalogue.match(product_type)
        policy = UNKNOWN if matched is None else self.catalogue.policies[matched]
        return AppliedPolicy(product_type, policy, CONFIGURED, matched)

    def is_unknown(self, product_type: str) -> bool:
        """Return whether a type has no policy."""
        return self.catalogue.match(product_type) is None


def explain(store: TenantStore, rules: AllocationRules, key: ExplainKey, tried: TriedDay | None = None) -> Explanation:
    """Return the explanation of what an identity is charged for a line, or would be charged on a day that was
    ``tried``.

    Raises:
        LineNotFound: the day, the line or the portion does not exist.
        PortionNeeded: the identity has rows of several portions.
        HistoryGone: the rows of that instant are no longer kept.
        AllocationError: the amounts of the day do not fit 38 digits.
        StorageError: the tenant's storage cannot be read.
    """
    return _Explainer(store, rules, key, tried).explain()


class _Explainer:
    """Explains one amount."""

    def __init__(self, store: TenantStore, rules: AllocationRules, key: ExplainKey, tried: TriedDay | None) -> None:
        self._store = store
        self._rules = rules
        self._key = key
        self._day = StoredDay(store, REVISED_CHARGEBACKS, key.day, key.as_of)
        self._is_tried = tried is not None
        self._rows = self._day.rows if tried is None else tried.rows
        with store.control.read() as connection:
            used = used_policies(connection)
        self._policies: AppliedPolicies | TriedDay = tried or AppliedPolicies(rules.on(key.day), used, self._rows)

    def explain(self) -> Explanation:
        """Return the explanation."""
        key = self._chosen_portion()
        of_line = where(self._rows, line_id=key.line_id)
        (billing, usage, members), missing = self._day.evidence()
        line = None if billing is None else first(billing, line_id=key.line_id)
        if line is None and of_line.num_rows == 0:
            raise LineNotFound(f"The bill of {key.day} has no line {key.line_id!r}.")
        product_type: str = (line or first(of_line) or {})["product_type"]
        policy = self._policies.find(product_type)
        portion, unknown = None, None
        if line is None and missing is None:
            missing = "the line is not on the bill that is kept"
        if policy is not None and billing is not None and usage is not None and members is not None and line:
            is_used = policy.policy.is_proportional or first(usage, resource_id=line["resource_id"]) is not None
            try:
                resolved = self._resolved(usage) if is_used else usage
                evidence = Evidence(key.day, billing, resolved, members, self._day.had_metrics())
                portion = self._calculate(evidence, policy, key, line)
            except PluginError as error:
                missing = error.message
        if portion is None and missing is None:
            missing = "a policy that was in force is not recorded; it is once the day is calculated again"
        row = _row(of_line, key)
        if row is None and not _occurs(key.identity_id, self._rows, usage, members):
            unknown = self._unknown()
        if portion is not None and unknown is not None:
            portion = replace(portion, why_nothing=unknown)
        shown = key if portion is None else replace(key, portion=portion.number)
        return Explanation(
            key=shown,
            row=row,
            line=line,
            policy=policy,
            unknown=unknown,
            billed=line or first(of_line),
            portion=portion,
            missing=missing,
            siblings=LineRows.of(of_line, line),
            revision=self._day.revision.revision if self._day.revision else None,
            revisions=[] if self._is_tried else self._day.amounts(key.line_id, line, lambda rows: _row(rows, shown)),
            is_same=None if portion is None else _is_same(row, portion, key.identity_id),
        )

    def _calculate(
        self, evidence: Evidence, policy: AppliedPolicy, key: ExplainKey, line: Mapping[str, Any]
    ) -> PortionExplanation | None:
        """Return the calculation; None if the policy of a line that it follows is not recorded."""
        types = {policy.product_type}
        if policy.policy.is_proportional:
            types = set(evidence.billing["product_type"].unique().to_pylist())
        applied = {name: found.policy for name in types if (found := self._policies.find(name)) is not None}
        if applied.keys() != types:
            return None
        policies = {name: policy for name, policy in applied.items() if not self._policies.is_unknown(name)}
        try:
            name = resource_name(self._store, line)
            return explain_line(evidence, policies, key.line_id, key.identity_id, key.portion, name)
        except ValueError as error:
            if key.portion is None:
                raise PortionNeeded(f"is needed: {error}") from None
            raise LineNotFound(f"Line {key.line_id!r} of {key.day}: {error}.") from None

    def _chosen_portion(self) -> ExplainKey:
        """Return the key with the portion of the identity's only row."""
        if self._key.portion is not None:
            return self._key
        mine = where(self._rows, line_id=self._key.line_id, identity_id=self._key.identity_id)
        numbers = sorted(mine["portion"].to_pylist())
        if len(numbers) > 1:
            raise PortionNeeded(f"is needed: the identity has rows of the portions {', '.join(map(str, numbers))}")
        return replace(self._key, portion=numbers[0] if numbers else None)

    def _unknown(self) -> str | None:
        """Return a reason if the inventory has no identity with the requested id; the request may have its name
        instead."""
        identity_id = self._key.identity_id
        with self._store.control.read() as connection:
            if identity_id == UNALLOCATED or names_of(connection, IDENTITIES, [identity_id]):
                return None
            named = ids_named(connection, IDENTITIES, identity_id)
        reason = f"no identity has the id {identity_id}"
        return f"{reason}, which is the name of {' and of '.join(named)}" if named else reason

    def _resolved(self, usage: pa.Table) -> pa.Table:
        resolve = self._rules.resolve
        return usage if resolve is None else resolve(self._key.day, usage, self._store.inventory)


def _occurs(identity_id: str, rows: pa.Table, usage: pa.Table | None, members: pa.Table | None) -> bool:
    """Return whether an identity occurs in the rows or the evidence of a day."""
    tables = ((rows, "identity_id"), (usage, "subject"), (members, "identity_id"))
    return any(where(table, **{column: identity_id}).num_rows for table, column in tables if table is not None)


def _row(of_line: pa.Table, key: ExplainKey) -> dict[str, Any] | None:
    """Return the row of the identity and the portion among those of a line."""
    if key.portion is None:
        return None
    mine = where(of_line, identity_id=key.identity_id)
    return first(mine.filter(pc.equal(mine["portion"], pa.scalar(key.portion, pa.int16()))))


def _is_same(row: Mapping[str, Any] | None, portion: PortionExplanation, identity_id: str) -> bool:
    """Return whether a calculation gives the stored row, or that there is none."""
    split, arithmetic, applied = portion.usage_split, portion.arithmetic, portion.applied
    if row is None:
        return portion.why_nothing is not None
    mine = None if split is None else split.participant(identity_id)
    if portion.why_nothing is not None or split is None or mine is None or arithmetic is None or applied is None:
        return False
    measured = split.measure is not None
    found = (
        arithmetic.amount,
        mine.value if measured else None,
        split.total if measured else None,
        portion.share,
        applied.position,
    )
    return all(row[name] == each for name, each in zip(_CALCULATED, found, strict=True))
