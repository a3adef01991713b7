"""An explanation as the front ends show it: its JSON, and one sentence that anyone in a team understands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.allocation.explain import Contest, ExplainedPortion
from chargeback.allocation.methods import AllocationMethod, MethodKind
from chargeback.allocation.policies import Policy
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import render
from chargeback.recompute.explain import Explanation
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.control.names import names_of

_WIDE: Final = Context(prec=100, rounding=ROUND_HALF_EVEN)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_VERBS: Final = {("bytes_in",): "wrote", ("bytes_out",): "read", ("bytes_in", "bytes_out"): "wrote and read"}
_BYTES: Final = (("PB", 15), ("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3))
#: Who shares a cost, by the method: the only one, and one of several.
_SHARERS: Final = {
    "even(active)": (
        "was the only identity active on {resource}",
        "was one of {count} identities active on {resource}",
    ),
    "even(period)": ("was the only active identity", "was one of {count} active identities"),
    "even(owners)": ("was the only owner in {resource}", "was one of {count} owners in {resource}"),
    "owner": ("owned {resource}", "was one of {count} owners of {resource}"),
}
_ROW_COLUMNS: Final = (
    *("line_id", "portion", "identity_id", "resource_id", "product_category", "product_type", "cost_type"),
    *("allocation_method", "allocation_detail", "chain_position", "policy_hash"),
)
_LINE_COLUMNS: Final = (
    *("line_id", "resource_id", "product_category", "product_type", "currency", "granularity", "unit", "description"),
)


@dataclass(frozen=True)
class ExplanationNames:
    """The display names of identities and resources, as far as they are known."""

    identities: Mapping[str, str]
    resources: Mapping[str, str]

    @classmethod
    def read(cls, connection: Connection, found: Explanation) -> ExplanationNames:
        """Return the names of everything that an explanation mentions."""
        contest = found.portion.contest if found.portion else None
        contenders = contest.contenders if contest else ()
        identities = {found.key.identity_id, *(each.identity_id for each in contenders)}
        billed = found.line or found.row
        resources = {billed["resource_id"]} if billed else set()
        return cls(
            {id_: each.name for id_, each in names_of(connection, IDENTITIES, identities).items() if each.name},
            {id_: each.name for id_, each in names_of(connection, RESOURCES, resources).items() if each.name},
        )


def explanation_json(found: Explanation, names: ExplanationNames, currency: str) -> dict[str, Any]:
    """Return an explanation as the API shows it."""
    row, portion = found.row, found.portion
    return {
        "sentence": sentence(found, names, currency),
        "date": found.key.day,
        "line_id": found.key.line_id,
        "identity_id": found.key.identity_id,
        "identity_name": names.identities.get(found.key.identity_id),
        "row": None if row is None else _row(row),
        "why_nothing": None if portion is None else portion.why_nothing,
        "line": None if found.line is None else _line(found.line, names),
        "policy": None
        if found.policy is None
        else {
            "product_type": found.policy.product_type,
            "matched": found.policy.matched,
            "hash": found.policy.policy.hash,
            "source": found.policy.source,
            "portions": policy_json(found.policy.policy),
        },
        **calculation_json(portion, names.identities),
        "evidence_missing": found.missing,
        "siblings": {
            "rows": found.siblings.rows,
            "sum": render(found.siblings.sum),
            "equals_line": found.siblings.equals_line,
        },
        "revision": found.revision,
        "revisions": [
            {
                "revision": each.revision.revision,
                "calculated_at": _instant(each.revision.calculated_at),
                "cause": each.revision.cause,
                "amount": None if each.amount is None else render(each.amount),
            }
            for each in found.revisions
        ],
        "recomputed": None if found.is_same is None else "same" if found.is_same else "different",
    }


def policy_json(policy: Policy) -> list[dict[str, Any]]:
    """Return the portions of a policy."""
    return [
        {"number": number, "share": render(each.share.normalize()), "methods": [str(method) for method in each.methods]}
        for number, each in enumerate(policy.portions, start=1)
    ]


def calculation_json(portion: ExplainedPortion | None, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the calculation of a portion; ``names`` are those of identities."""
    if portion is None:
        return {"portion": None, "methods": [], "evidence": None, "arithmetic": None}
    arithmetic = portion.arithmetic
    return {
        "portion": {"number": portion.number, "share": render(portion.share), "amount": render(portion.amount)},
        "methods": [
            {
                "position": each.position,
                "method": str(each.method),
                "applied": each.applied,
                "why_not": each.why_not,
                "candidates": each.candidates,
            }
            for each in portion.methods
        ],
        "evidence": None if portion.contest is None else _contest(portion.contest, names),
        "arithmetic": None
        if arithmetic is None
        else {
            "exact": f"{arithmetic.exact.numerator}/{arithmetic.exact.denominator}",
            "units_floor": str(arithmetic.units_floor),
            "spare_units": arithmetic.spare_units,
            "remainder_rank": arithmetic.remainder_rank,
            "extra_unit": arithmetic.extra_unit,
            "amount": render(arithmetic.amount),
        },
    }


def _contest(contest: Contest, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "measure": contest.measure,
        "total": None if contest.total is None else render(contest.total),
        "contenders": [
            {
                "identity_id": each.identity_id,
                "name": names.get(each.identity_id),
                "value": None if each.value is None else render(each.value),
                "ratio": render(_rounded(each.ratio, 6)),
            }
            for each in contest.contenders
        ],
        "contenders_total": contest.contenders_total,
        "members": contest.members,
        "metrics_available": contest.metrics_available,
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: row[name] for name in _ROW_COLUMNS}
    amounts = ("amount", "portion_share", "identity_usage", "total_usage")
    return {
        "timestamp": _instant(row["timestamp"]),
        **shown,
        **{name: None if row[name] is None else render(row[name]) for name in amounts},
    }


def _line(line: Mapping[str, Any], names: ExplanationNames) -> dict[str, Any]:
    amounts = ("quantity", "unit_price", "total_cost")
    return {
        "timestamp": _instant(line["timestamp"]),
        **{name: line[name] for name in _LINE_COLUMNS},
        "resource_name": names.resources.get(line["resource_id"]) or line["resource_name"],
        **{name: None if line[name] is None else render(line[name]) for name in amounts},
    }


def _instant(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def sentence(found: Explanation, names: ExplanationNames, currency: str) -> str:
    """Return what an explanation says, for people who do not know the service."""
    billed = found.line or found.row
    if billed is None or found.portion is None:
        return _without_evidence(found, names, currency)
    teller = _Teller(found, found.portion, names, currency, billed)
    return f"{teller.evidence()} {teller.money()}".strip()


def _without_evidence(found: Explanation, names: ExplanationNames, currency: str) -> str:
    who = _name(names.identities, found.key.identity_id)
    charged = "nothing" if found.row is None else _money(found.row["amount"], currency)
    return (
        f"{_start(who)} is charged {charged} of line {found.key.line_id} on {_day(found.key.day)}; "
        f"why cannot be shown, because {found.missing}."
    )


@dataclass(frozen=True)
class _Teller:
    """Tells one calculation."""

    found: Explanation
    portion: ExplainedPortion
    names: ExplanationNames
    currency: str
    billed: Mapping[str, Any]

    @property
    def who(self) -> str:
        """The identity, at the start of a sentence."""
        return _start(_name(self.names.identities, self.found.key.identity_id))

    @property
    def resource(self) -> str:
        """The resource of the line."""
        return _name(self.names.resources, self.billed["resource_id"])

    def evidence(self) -> str:
        """Return what was found out, with the day."""
        portion, applied = self.portion, self.portion.applied
        where, day = self.resource, _day(self.found.key.day)
        if applied is None or portion.contest is None:
            return f"{self.who} is charged nothing for {where} on {day}, because {portion.why_nothing}."
        if applied.method.kind is MethodKind.UNALLOCATED:
            return f"Nobody could be found to charge for {where} on {day}{self._needed()}."
        mine = next((e for e in portion.contest.contenders if e.identity_id == self.found.key.identity_id), None)
        if mine is None:
            return f"{self.who} is charged nothing for {where} on {day}: {portion.why_nothing}."
        if applied.method.kind is MethodKind.USAGE and mine.value is not None and portion.contest.total is not None:
            did = _measured(applied.method, mine.value, portion.contest.total)
            return f"{self._subject_of_usage()} {did} on {where} on {day}."
        if applied.method.kind is MethodKind.PROPORTIONAL and mine.value is not None and portion.contest.total:
            parts = f"{_money(mine.value)} of {_money(portion.contest.total, self.currency)}"
            return f"{self.who} was charged {parts} for other lines on {day}."
        count = portion.contest.contenders_total
        text = _SHARERS[str(applied.method)][count > 1].format(count=count, resource=where)
        return f"{self.who} {text} on {day}."

    def money(self) -> str:
        """Return how the amount follows from the line."""
        portion, applied = self.portion, self.portion.applied
        if applied is None:
            return ""
        cost = self.billed["total_cost"] if self.found.line else portion.amount
        line = f"the {self.billed['product_type']} line of {_money(cost, self.currency)}"
        part = f"{_percent(portion.share)} of {line}" if portion.share != 1 else line
        charged = None if portion.arithmetic is None else portion.arithmetic.amount
        amount = "nothing" if not charged else _money(charged, self.currency)
        return f"{_start(part)} {self._follows(applied.method)}: {amount} for {self._payer()}."

    def _payer(self) -> str:
        return _name(self.names.identities, self.found.key.identity_id)

    def _subject_of_usage(self) -> str:
        return "Users without a known owner" if self.found.key.identity_id == UNALLOCATED else self.who

    def _needed(self) -> str:
        """Return what each method before the last would have needed."""
        reasons = [each.why_not for each in self.portion.methods if each.why_not]
        if not reasons and self.found.policy is not None and self.found.policy.matched is None:
            reasons = [f"no policy is known for {self.found.policy.product_type}"]
        return f": {'; '.join(reasons)}" if reasons else ""

    def _follows(self, method: AllocationMethod) -> str:
        if method.kind is MethodKind.USAGE:
            return f"follows {_plain(method)}"
        if method.kind is MethodKind.PROPORTIONAL:
            return "follows what the other lines charge"
        if method.kind is MethodKind.UNALLOCATED:
            return "stays unallocated"
        return "goes to the owner" if method.kind is MethodKind.OWNER else "is shared evenly"


def _plain(method: AllocationMethod) -> str:
    if all(measure.startswith("bytes") for measure in method.arguments):
        return "bytes"
    return " and ".join(measure.replace("_", " ") for measure in method.arguments)


def _measured(method: AllocationMethod, value: Decimal, whole: Decimal) -> str:
    """Return what was measured, such as «wrote 12.3 of 45.6 GB»."""
    if not all("bytes" in measure for measure in method.arguments):
        return f"used {_short(value)} of {_short(whole)} {_plain(method)}"
    unit, power = next(((name, power) for name, power in _BYTES if whole >= Decimal(10) ** power), ("bytes", 0))
    mine, total = (_short(each.scaleb(-power, _WIDE)) for each in (value, whole))
    verb = _VERBS.get(tuple(sorted(method.arguments)), "used")
    return f"{verb} {mine} of {total} {unit}"


def _short(value: Decimal) -> str:
    """Return a quantity with three significant digits, or all digits before the point."""
    places = max(0, 2 - value.adjusted()) if value else 0
    text = f"{value.quantize(Decimal(1).scaleb(-places), context=_WIDE):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _money(amount: Decimal, currency: str = "") -> str:
    """Return an amount rounded to cents; a smaller one with two significant digits."""
    places = 2 if not amount or amount.adjusted() >= -2 else 1 - amount.adjusted()
    text = f"{amount.quantize(Decimal(1).scaleb(-places), context=_WIDE):f}"
    return f"{text} {currency}".strip()


def _percent(share: Decimal) -> str:
    return f"{_short(share.scaleb(2, _WIDE))} %"


def _day(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _name(names: Mapping[str, str], id_: str) -> str:
    return "UNALLOCATED" if id_ == UNALLOCATED else names.get(id_, id_)


def _start(text: str) -> str:
    return f"T{text[1:]}" if text.startswith("the ") else text


def _rounded(ratio: Fraction, places: int) -> Decimal:
    return Decimal(round(ratio * 10**places)).scaleb(-places, _WIDE)
