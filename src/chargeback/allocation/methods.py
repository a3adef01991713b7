"""Allocation methods: how a portion of a cost can be split, and what the rows show for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from chargeback.model import chargeback as chargeback_model
from chargeback.model.usage import ACTIVE, OWNER, OWNERS, PERIOD


class MethodKind(StrEnum):
    """The kinds of allocation methods."""

    USAGE = "usage"
    EVEN = "even"
    PROPORTIONAL = "proportional"
    OWNER = "owner"
    UNALLOCATED = "unallocated"


#: What is measured, in words; of other measures the words of their names.
_MEASURES: Final = {
    ("bytes_in",): "written bytes",
    ("bytes_out",): "read bytes",
    ("bytes_in", "bytes_out"): "bytes",
    ("topic_bytes_in",): "received bytes",
    ("topic_bytes_out",): "sent bytes",
    ("topic_bytes_in", "topic_bytes_out"): "bytes",
}
_ACRONYMS: Final = {"cfu": "CFU", "cfus": "CFUs"}

EVEN_SCOPES = ("active", "period", "owners")

_CALL = re.compile(r"^(?P<name>[a-z]+)\s*(?:\(\s*(?P<arguments>[^()]*?)\s*\))?$")
_MEASURE = re.compile(r"^[a-z][a-z0-9_]*$")


@dataclass(frozen=True, slots=True)
class AllocationMethod:
    """One method of splitting a portion: its kind and its arguments.

    The arguments of ``usage`` are the measures to add up; that of ``even`` is its scope.
    """

    kind: MethodKind
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({' + '.join(self.arguments)})" if self.arguments else str(self.kind)

    @property
    def measured(self) -> str:
        """What ``usage`` measures, in words.

        >>> AllocationMethod.parse("usage(bytes_in + bytes_out)").measured
        'bytes'
        >>> AllocationMethod.parse("usage(topic_retained_bytes)").measured
        'retained bytes'
        """
        known = _MEASURES.get(tuple(sorted(self.arguments)))
        words = (each.removeprefix("topic_").split("_") for each in self.arguments)
        return known or " and ".join(" ".join(_ACRONYMS.get(word, word) for word in some) for some in words)

    @classmethod
    def parse(cls, text: str) -> AllocationMethod:
        """Return the method that ``text`` names.

        Raises:
            ValueError: ``text`` names no method.

        >>> str(AllocationMethod.parse("usage( bytes_in+bytes_out )"))
        'usage(bytes_in + bytes_out)'
        """
        match = _CALL.match(text.strip())
        if match is None or match["name"] not in set(MethodKind):
            raise ValueError(
                f"{text!r} is not an allocation method; use usage(…), even(…), proportional, owner or unallocated"
            )
        kind = MethodKind(match["name"])
        argument_text = match["arguments"]
        arguments = tuple(part.strip() for part in argument_text.split("+")) if argument_text else ()
        if kind is MethodKind.USAGE:
            if not arguments or not all(_MEASURE.match(measure) for measure in arguments):
                raise ValueError(f"{text!r}: usage(…) takes measures, such as usage(bytes_in + bytes_out)")
        elif kind is MethodKind.EVEN:
            if len(arguments) != 1 or arguments[0] not in EVEN_SCOPES:
                raise ValueError(f"{text!r}: even(…) takes one of {', '.join(EVEN_SCOPES)}")
        elif argument_text is not None:
            raise ValueError(f"{text!r}: {kind} takes no arguments")
        return cls(kind, arguments)


EVEN_ACTIVE: Final = AllocationMethod(MethodKind.EVEN, ("active",))
EVEN_PERIOD: Final = AllocationMethod(MethodKind.EVEN, ("period",))
PROPORTIONAL: Final = AllocationMethod(MethodKind.PROPORTIONAL)
UNALLOCATED: Final = AllocationMethod(MethodKind.UNALLOCATED)

#: The relation of the members who share a portion, for each method that follows membership.
RELATIONS: Final = {
    EVEN_ACTIVE: ACTIVE,
    EVEN_PERIOD: PERIOD,
    AllocationMethod(MethodKind.EVEN, ("owners",)): OWNERS,
    AllocationMethod(MethodKind.OWNER): OWNER,
}

#: The methods whose identities do not depend on the resource of the line.
TENANT_WIDE: Final = frozenset({EVEN_PERIOD, PROPORTIONAL, UNALLOCATED})


class AllocationOutcome(NamedTuple):
    """What a row shows about its method; ``detail`` applies if the method was the first of its chain."""

    cost_type: str
    allocation_method: str
    detail: str


OUTCOMES: Final = {
    MethodKind.USAGE: AllocationOutcome(
        chargeback_model.USAGE_COST, chargeback_model.USAGE_RATIO, chargeback_model.USAGE_RATIO_ALLOCATION
    ),
    MethodKind.OWNER: AllocationOutcome(
        chargeback_model.USAGE_COST, chargeback_model.DIRECT, chargeback_model.OWNER_ALLOCATION
    ),
    MethodKind.EVEN: AllocationOutcome(
        chargeback_model.SHARED_COST, chargeback_model.EVEN_SPLIT, chargeback_model.EVEN_SPLIT_ALLOCATION
    ),
    MethodKind.PROPORTIONAL: AllocationOutcome(
        chargeback_model.SHARED_COST, chargeback_model.PROPORTIONAL, chargeback_model.PROPORTIONAL_ALLOCATION
    ),
    MethodKind.UNALLOCATED: AllocationOutcome(
        chargeback_model.SHARED_COST, chargeback_model.TERMINAL, chargeback_model.NO_IDENTITIES_LOCATED
    ),
}
