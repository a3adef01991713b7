"""An explanation as one or two sentences that anyone in a team understands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from chargeback.allocation.explain import OTHERS, PortionExplanation
from chargeback.allocation.methods import AllocationMethod, MethodKind
from chargeback.model.inventory import UNALLOCATED
from chargeback.recompute.explain import Explanation
from chargeback.reports.wording import DisplayNames, calendar_day, measured, money_text, name, percent, start

_VERBS: Final = {("bytes_in",): "wrote", ("bytes_out",): "read", ("bytes_in", "bytes_out"): "wrote and read"}
#: The texts about those who share a cost, by the method: the only one, and one of several.
_SHARERS: Final = {
    "even(active)": (
        "was the only identity active on {resource}",
        "was one of {count} identities active on {resource}",
    ),
    "even(period)": ("was the only active identity", "was one of {count} active identities"),
    "even(owners)": ("was the only owner in {resource}", "was one of {count} owners in {resource}"),
    "owner": ("owned {resource}", "was one of {count} owners of {resource}"),
}


def sentence(found: Explanation, names: DisplayNames, currency: str) -> str:
    """Return an explanation in words, for people who do not know the service."""
    if found.billed is None or found.portion is None:
        return _without_evidence(found, names, currency)
    sentences = _Sentences(found, found.portion, names, currency, found.billed)
    return f"{sentences.evidence()} {sentences.split()}".strip()


def _without_evidence(found: Explanation, names: DisplayNames, currency: str) -> str:
    who = name(names.identities, found.key.identity_id)
    charged = "nothing" if found.row is None else money_text(found.row["amount"], currency)
    line, day = f"line {found.key.line_id}", calendar_day(found.key.day)
    if found.billed is not None:
        resource = name(names.resources, found.billed["resource_id"])
        line = f"the {found.billed['product_type']} line of {resource}"
    if found.unknown is not None:
        return f"{start(who)} is charged {charged} of {line} on {day}: {found.unknown}."
    return f"{start(who)} is charged {charged} of {line} on {day}. How is not known: {found.missing}."


def fallback(portion: PortionExplanation) -> str:
    """Return why a portion was not split by the methods before the applied one, for the middle of a sentence; empty for
    unallocated costs, whose sentence has the reasons elsewhere."""
    applied = portion.applied
    if applied is None or applied.position == 1 or applied.method.kind is MethodKind.UNALLOCATED:
        return ""
    reasons = [each.why_not for each in portion.methods[: applied.position - 1] if each.why_not]
    return f" because {', and '.join(dict.fromkeys(reasons))}"


@dataclass(frozen=True)
class _Sentences:
    """The sentences about one calculation."""

    found: Explanation
    portion: PortionExplanation
    names: DisplayNames
    currency: str
    billed: Mapping[str, Any]

    @property
    def who(self) -> str:
        """Return the identity, for the start of a sentence."""
        return start(name(self.names.identities, self.found.key.identity_id))

    @property
    def resource(self) -> str:
        """Return the resource of the line."""
        return name(self.names.resources, self.billed["resource_id"])

    def evidence(self) -> str:
        """Return the sentence about the evidence, with the day."""
        portion, applied = self.portion, self.portion.applied
        where, day = self.resource, calendar_day(self.found.key.day)
        if applied is None or portion.usage_split is None:
            return f"{self.who} is charged nothing for {where} on {day}, because {portion.why_nothing}."
        if applied.method.kind is MethodKind.UNALLOCATED:
            return f"No identity could be charged for {where} on {day}{self._needed()}."
        mine = portion.usage_split.participant(self.found.key.identity_id)
        if mine is None:
            return f"{self.who} is charged nothing for {where} on {day}: {portion.why_nothing}."
        if applied.method.kind is MethodKind.USAGE and mine.value is not None and portion.usage_split.total is not None:
            verb = _VERBS.get(tuple(sorted(applied.method.arguments)), "used")
            did = measured(applied.method, mine.value, portion.usage_split.total, verb)
            return f"{self._subject_of_usage()} {did} on {where} on {day}."
        if applied.method.kind is MethodKind.PROPORTIONAL and mine.value is not None and portion.usage_split.total:
            mine_text = money_text(mine.value, self.currency, with_currency=False)
            parts = f"{mine_text} of {money_text(portion.usage_split.total, self.currency)}"
            return f"{self.who} was charged {parts} for other lines on {day}."
        participants = portion.usage_split.participants
        count = "several" if portion.usage_split.participant(OTHERS) else len(participants)
        text = _SHARERS[str(applied.method)][len(participants) > 1].format(count=count, resource=where)
        return f"{self.who} {text} on {day}."

    def split(self) -> str:
        """Return the sentence about the calculation of the amount."""
        portion, applied = self.portion, self.portion.applied
        if applied is None:
            return ""
        cost = self.billed["total_cost"] if self.found.line else portion.amount
        line = f"the {self.billed['product_type']} line of {money_text(cost, self.currency)}"
        part = f"{percent(portion.share)} of {line}" if portion.share != 1 else line
        charged = None if portion.arithmetic is None else portion.arithmetic.amount
        amount = "nothing" if not charged else money_text(charged, self.currency)
        follows = f"{self._follows(applied.method)}{fallback(self.portion)}"
        return f"{start(part)} {follows}: {amount} for {name(self.names.identities, self.found.key.identity_id)}."

    def _subject_of_usage(self) -> str:
        return "Users without a known owner" if self.found.key.identity_id == UNALLOCATED else self.who

    def _needed(self) -> str:
        """Return the requirements of each method before the last."""
        reasons = [each.why_not for each in self.portion.methods if each.why_not]
        if not reasons and self.found.policy is not None and self.found.policy.matched is None:
            reasons = [f"no policy is known for {self.found.policy.product_type}"]
        return f": {'; '.join(reasons)}" if reasons else ""

    def _follows(self, method: AllocationMethod) -> str:
        if method.kind is MethodKind.USAGE:
            return f"follows {method.measured}"
        if method.kind is MethodKind.PROPORTIONAL:
            return "follows what the other lines charge"
        if method.kind is MethodKind.UNALLOCATED:
            return "stays unallocated"
        return "goes to the owner" if method.kind is MethodKind.OWNER else "is shared evenly"
