"""The explanation of one stored amount, from the evidence of the revision that it belongs to.

The line is calculated once more and compared with what is stored. Where the evidence is no longer kept or damaged,
what is stored is all that can be told: nothing is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.day import Evidence
from chargeback.allocation.explain import ExplainedPortion, explain_line
from chargeback.allocation.policies import UNKNOWN, Policy, PolicyCatalogue, parse_policies
from chargeback.config import Tenant
from chargeback.ecosystems.contract import UsageResolver
from chargeback.errors import DamagedFacts, ForgottenDay, HistoryGone, PluginError
from chargeback.model.chargeback import METRICS_UNAVAILABLE, UNKNOWN_PRODUCT_TYPE
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import Inventory
from chargeback.model.money import render, total
from chargeback.store.control.day_revisions import CHARGEBACK_REVISIONS, Revision, revisions_of_day
from chargeback.store.control.days import METRICS, DayState, read_days
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.policies import UsedPolicy, used_policies
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.history import files_of_day, past_files
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, MEMBERS_TABLE, USAGE_TABLE, read_files
from chargeback.store.queries.as_of import KnownRevisions
from chargeback.store.tenant import TenantStore

SHIPPED: Final = "shipped"
CONFIGURED: Final = "configured"
RECORDED: Final = "recorded"

#: The columns of a row that the calculation decides.
_CALCULATED: Final = ("amount", "identity_usage", "total_usage", "portion_share", "chain_position")


class LineNotFound(LookupError):
    """The day has no such line, or the line no such portion; the message says which."""


class PortionNeeded(LookupError):
    """The identity has rows of several portions of the line, so one of them must be named."""


@dataclass(frozen=True)
class AllocationRules:
    """How the days of a tenant are calculated.

    Attributes:
        catalogue: the tenant's policies.
        shipped: those of its ecosystem, without the tenant's changes.
        resolve: returns stored usage with identities as subjects; None if it is stored with them.
    """

    catalogue: PolicyCatalogue = field(default_factory=lambda: PolicyCatalogue({}, {}))
    shipped: PolicyCatalogue = field(default_factory=lambda: PolicyCatalogue({}, {}))
    resolve: Callable[[date, pa.Table, Inventory], pa.Table] | None = None

    @classmethod
    def of(cls, tenant: Tenant) -> Self:
        """Return the rules of a configured tenant."""
        ecosystem = tenant.ecosystem
        resolve = ecosystem.resolve_usage if isinstance(ecosystem, UsageResolver) else None
        return cls(ecosystem.tenant_catalogue(tenant.plugin_settings), ecosystem.catalogue, resolve)


@dataclass(frozen=True, slots=True)
class ExplainKey:
    """What is to be explained: the share of an identity in one line of a day, now or ``as_of`` an earlier instant.

    Without a ``portion`` it is the one of which the identity has a row, else the first one.
    """

    day: date
    line_id: str
    identity_id: str
    portion: int | None = None
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """The policy of a line, and where it comes from: it is that of the ecosystem (``shipped``), of the tenant's
    configuration (``configured``), or was in force when the row was calculated and is not any more (``recorded``).

    ``matched`` is the name or pattern in the catalogue; None for a policy that is not in it.
    """

    product_type: str
    policy: Policy
    source: str
    matched: str | None


@dataclass(frozen=True, slots=True)
class Siblings:
    """All stored rows of the line: how many, their sum, and whether it is the cost of the line (None: unknown)."""

    rows: int
    sum: Decimal
    equals_line: bool | None


@dataclass(frozen=True, slots=True)
class RevisionAmount:
    """The amount in one revision of the day: zero without a row, None if its files are no longer kept or damaged."""

    revision: Revision
    amount: Decimal | None


@dataclass(frozen=True)
class Explanation:
    """Why an identity has an amount of a line, or why it has none.

    Attributes:
        row: the stored row (columns of CHARGEBACKS); None if there is none.
        line: the billing line (columns of BILLING); None if the bill is lost.
        policy: None if it is not known.
        portion: the calculation; None if the evidence is missing.
        missing: why the evidence is missing.
        revision: the number of the revision in force; None if it is not known.
        is_same: whether the calculation gives what is stored; None if the evidence is missing.
    """

    key: ExplainKey
    row: Mapping[str, Any] | None
    line: Mapping[str, Any] | None
    policy: AppliedPolicy | None
    portion: ExplainedPortion | None
    missing: str | None
    siblings: Siblings
    revision: int | None
    revisions: Sequence[RevisionAmount]
    is_same: bool | None


def explain(store: TenantStore, rules: AllocationRules, key: ExplainKey) -> Explanation:
    """Return the explanation of what an identity is charged for a line.

    Raises:
        LineNotFound: the day, the line or the portion does not exist.
        PortionNeeded: the identity has rows of several portions.
        HistoryGone: the rows of that instant are no longer kept.
        AllocationError: the amounts of the day do not fit 38 digits.
        StorageError: the tenant's storage cannot be read.
    """
    return _Explainer(store, rules, key).explain()


class _Explainer:
    """Explains one amount; reads every file at most once."""

    def __init__(self, store: TenantStore, rules: AllocationRules, key: ExplainKey) -> None:
        self._facts = store.facts
        self._store = store
        self._rules = rules
        self._key = key
        day = key.day
        with store.control.read() as connection:
            states = read_days(connection, DayRange(day, day + ONE_DAY))
            recorded = revisions_of_day(connection, CHARGEBACK_REVISIONS, day)
            self._used: list[UsedPolicy] = used_policies(connection)
        self._state: DayState | None = states[0] if states else None
        # Snapshots are read after the revisions: what the revisions name is in one of the tables.
        self._present = self._facts.snapshot(CHARGEBACKS_TABLE)
        known = KnownRevisions(
            {CHARGEBACK_REVISIONS: {day: recorded} if recorded else {}},
            {CHARGEBACK_REVISIONS: {state.tracking_date: state.revision for state in states}},
        )
        self._revisions = known.effective(CHARGEBACK_REVISIONS, self._present).get(day, ())
        in_force = [each for each in self._revisions if key.as_of is None or each.calculated_at <= key.as_of]
        if recorded and not in_force:
            raise LineNotFound(f"The day {day} was not calculated then.")
        self._revision: Revision | None = in_force[-1] if in_force else None
        self._rows = self._stored_rows()
        self._used_by_type = _used_by_type(self._rows)
        if not recorded and self._rows.num_rows == 0:
            raise LineNotFound(f"The day {day} is not calculated.")

    def explain(self) -> Explanation:
        """Return the explanation."""
        key = self._chosen_portion()
        of_line = self._rows.filter(pc.equal(self._rows["line_id"], pa.scalar(key.line_id, pa.string())))
        row = self._row(of_line, key)
        billing, usage, members, missing = self._evidence()
        line = None if billing is None else _first(billing, line_id=key.line_id)
        if line is None and of_line.num_rows == 0:
            raise LineNotFound(f"The bill of {key.day} has no line {key.line_id!r}.")
        product_type: str = (line or _first(of_line) or {})["product_type"]
        policy = self._policy(product_type)
        portion = None
        if line is None and missing is None:
            missing = "the line is not on the bill that is kept"
        if policy is not None and billing is not None and usage is not None and members is not None and line:
            is_used = policy.policy.is_proportional or _first(usage, resource_id=line["resource_id"]) is not None
            try:
                resolved = self._resolved(usage) if is_used else usage
                evidence = Evidence(key.day, billing, resolved, members, self._metrics_available())
                portion = self._calculate(evidence, policy, key)
            except PluginError as error:
                missing = error.message
        if portion is None and missing is None:
            missing = "a policy that was in force is not recorded"
        return Explanation(
            replace(key, portion=portion.number if portion else key.portion),
            row,
            line,
            policy,
            portion,
            missing,
            _siblings(of_line, line),
            self._revision.revision if self._revision else None,
            self._amounts(key if portion is None else replace(key, portion=portion.number)),
            None if portion is None else _is_same(row, portion, key.identity_id),
        )

    def _calculate(self, evidence: Evidence, policy: AppliedPolicy, key: ExplainKey) -> ExplainedPortion | None:
        """Return the calculation; None if the policy of a line that it follows is not recorded."""
        types = {policy.product_type}
        if policy.policy.is_proportional:
            types = set(evidence.billing["product_type"].unique().to_pylist())
        applied = {name: found.policy for name in types if (found := self._policy(name)) is not None}
        if applied.keys() != types:
            return None
        policies = {name: policy for name, policy in applied.items() if not self._is_unknown(name)}
        try:
            return explain_line(evidence, policies, key.line_id, key.identity_id, key.portion)
        except ValueError as error:
            if key.portion is None:
                raise PortionNeeded(f"is needed: {error}") from None
            raise LineNotFound(f"Line {key.line_id!r} of {key.day}: {error}.") from None

    def _chosen_portion(self) -> ExplainKey:
        """Return the key with the portion of which the identity has its only row."""
        if self._key.portion is not None:
            return self._key
        mine = self._rows.filter(_where(self._rows, line_id=self._key.line_id, identity_id=self._key.identity_id))
        numbers = sorted(mine["portion"].to_pylist())
        if len(numbers) > 1:
            raise PortionNeeded(f"is needed: the identity has rows of the portions {', '.join(map(str, numbers))}")
        return replace(self._key, portion=numbers[0] if numbers else None)

    def _row(self, of_line: pa.Table, key: ExplainKey) -> dict[str, Any] | None:
        if key.portion is None:
            return None
        mine = of_line.filter(_where(of_line, identity_id=key.identity_id))
        return _first(mine.filter(pc.equal(mine["portion"], pa.scalar(key.portion, pa.int16()))))

    def _files(self, name: str, revision: Revision | None) -> tuple[DayFile, ...] | None:
        """Return the files that a table had in a revision, or None if one of them is gone."""
        present = self._present if name == CHARGEBACKS_TABLE else self._facts.snapshot(name)
        if revision is None or revision.files is None:
            return files_of_day(present, self._key.day)
        names = revision.files.get(name)
        return None if names is None else past_files(self._facts, name, present).find(self._key.day, names)

    def _stored_rows(self) -> pa.Table:
        """Return the rows of the day that were in force."""
        if self._key.as_of is None:
            files: tuple[DayFile, ...] | None = files_of_day(self._present, self._key.day)
        else:
            files = self._files(CHARGEBACKS_TABLE, self._revision)
        if files is None:
            raise HistoryGone([_forgotten(each) for each in (self._revision,) if each is not None])
        return read_files(CHARGEBACKS_TABLE, self._key.day, files)

    def _evidence(self) -> tuple[pa.Table | None, pa.Table | None, pa.Table | None, str | None]:
        """Return bill, usage and members of the revision in force, each None if it is lost, and the first reason."""
        found: list[pa.Table | None] = []
        missing = None
        for name in (BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE):
            files, table = self._files(name, self._revision), None
            if files is None:
                reason = f"the table {name} as it was when the day was calculated is no longer kept"
            else:
                try:
                    table, reason = read_files(name, self._key.day, files), ""
                except DamagedFacts as error:
                    reason = error.message
            missing = missing or reason or None
            found.append(table)
        billing, usage, members = found
        return billing, usage, members, missing

    def _resolved(self, usage: pa.Table) -> pa.Table:
        if self._rules.resolve is None:
            return usage
        with self._store.control.read() as connection:
            inventory = read_inventory(connection)
        return self._rules.resolve(self._key.day, usage, inventory)

    def _metrics_available(self) -> bool:
        """Return whether the day was calculated with metrics: the rows tell, and the state of the latest revision."""
        if METRICS_UNAVAILABLE in self._rows["allocation_detail"].unique().to_pylist():
            return False
        is_latest = self._revision is None or self._revision == self._revisions[-1]
        return not (is_latest and self._state is not None and METRICS in self._state.incomplete)

    def _policy(self, product_type: str) -> AppliedPolicy | None:
        """Return the policy by which the lines of a type were split, or None if it is not recorded."""
        used_hash, _ = self._used_by_type.get(product_type, (None, False))
        matched = self._rules.catalogue.match(product_type)
        configured = UNKNOWN if matched is None else self._rules.catalogue.policies[matched]
        if used_hash in {None, configured.hash}:
            shipped = self._rules.shipped.find(product_type) or UNKNOWN
            source = SHIPPED if shipped.hash == configured.hash else CONFIGURED
            return AppliedPolicy(product_type, configured, source, matched)
        if used_hash == UNKNOWN.hash:
            return AppliedPolicy(product_type, UNKNOWN, RECORDED, None)
        text = next((each.text for each in self._used if each.hash == used_hash), None)
        if text is None:
            return None
        return AppliedPolicy(product_type, _parsed(product_type, text), RECORDED, None)

    def _is_unknown(self, product_type: str) -> bool:
        """Return whether the rows of a type say that it had no policy."""
        used = self._used_by_type.get(product_type)
        return self._rules.catalogue.match(product_type) is None if used is None else used[1]

    def _amounts(self, key: ExplainKey) -> list[RevisionAmount]:
        """Return the amount in every revision of the day."""
        amounts = []
        for revision in self._revisions:
            rows: pa.Table | None = self._rows
            if revision != self._revision:
                rows = self._rows_of(revision)
            mine = None if rows is None else self._row_of(rows, key)
            amount = None if rows is None else (Decimal(0) if mine is None else mine["amount"])
            amounts.append(RevisionAmount(revision, amount))
        return amounts

    def _row_of(self, rows: pa.Table, key: ExplainKey) -> dict[str, Any] | None:
        return self._row(rows.filter(_where(rows, line_id=key.line_id)), key)

    def _rows_of(self, revision: Revision) -> pa.Table | None:
        files = self._files(CHARGEBACKS_TABLE, revision)
        try:
            return None if files is None else read_files(CHARGEBACKS_TABLE, self._key.day, files)
        except DamagedFacts:
            return None


def _forgotten(revision: Revision) -> ForgottenDay:
    known = None if revision.total is None else render(revision.total)
    return ForgottenDay(revision.tracking_date, revision.revision, revision.rows, known)


def _parsed(product_type: str, text: str) -> Policy:
    return parse_policies({product_type: json.loads(text)}, "policies")[product_type]


def _used_by_type(rows: pa.Table) -> dict[str, tuple[str, bool]]:
    """Return the hash of the policy of each product type of some rows, and whether the type was unknown."""
    columns = ["product_type", "policy_hash", "allocation_detail"]
    used = rows.select(columns).group_by(columns).aggregate([])
    return {
        each["product_type"]: (each["policy_hash"], each["allocation_detail"] == UNKNOWN_PRODUCT_TYPE)
        for each in used.to_pylist()
    }


def _where(table: pa.Table, **values: str) -> Any:
    conditions = [pc.equal(table[name], pa.scalar(value, pa.string())) for name, value in values.items()]
    return reduce(pc.and_, conditions)


def _first(table: pa.Table, **values: str) -> dict[str, Any] | None:
    """Return the first row that has some values."""
    found = table.filter(_where(table, **values)) if values else table
    rows: list[dict[str, Any]] = found.slice(0, 1).to_pylist()
    return rows[0] if rows else None


def _siblings(of_line: pa.Table, line: Mapping[str, Any] | None) -> Siblings:
    charged = total(of_line["amount"].to_pylist())
    return Siblings(of_line.num_rows, charged, None if line is None else charged == line["total_cost"])


def _is_same(row: Mapping[str, Any] | None, portion: ExplainedPortion, identity_id: str) -> bool:
    """Return whether a calculation gives the stored row, or that there is none."""
    contest, arithmetic, applied = portion.contest, portion.arithmetic, portion.applied
    if row is None:
        return portion.why_nothing is not None
    if portion.why_nothing is not None or contest is None or arithmetic is None or applied is None:
        return False
    measured = contest.measure is not None
    value = next(each.value for each in contest.contenders if each.identity_id == identity_id)
    found = (
        arithmetic.amount,
        value if measured else None,
        contest.total if measured else None,
        portion.share,
        applied.position,
    )
    return all(row[name] == each for name, each in zip(_CALCULATED, found, strict=True))
