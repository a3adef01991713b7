"""Policies: how a product type is split, as data that a person can read, override and try out.

A policy turns one billing line into *portions*. Each portion has a share of the cost and a chain of *ways*; the
first way that finds somebody wins. Written down::

    KAFKA_NUM_CKUS:
      portions:
        - share: "0.70"
          try: [usage(bytes_in + bytes_out), even(active), even(period), unallocated]
        - share: "0.30"
          try: [even(active), even(period), unallocated]
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from chargeback.errors import ConfigurationError, Problem
from chargeback.model.money import parse_decimal


class Kind(StrEnum):
    """What a way does with a portion."""

    USAGE = "usage"
    EVEN = "even"
    PROPORTIONAL = "proportional"
    OWNER = "owner"
    UNALLOCATED = "unallocated"


EVEN_SCOPES = ("active", "period", "owners")

_CALL = re.compile(r"^(?P<name>[a-z]+)\s*(?:\(\s*(?P<arguments>[^()]*?)\s*\))?$")
_MEASURE = re.compile(r"^[a-z][a-z0-9_]*$")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to split a portion: its kind and, for ``usage``, the measures added up, for ``even``, the scope."""

    kind: Kind
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({' + '.join(self.arguments)})" if self.arguments else str(self.kind)

    @classmethod
    def parse(cls, text: str) -> Way:
        """The way that ``text`` spells.

        Raises:
            ValueError: it spells none.

        >>> str(Way.parse("usage( bytes_in+bytes_out )"))
        'usage(bytes_in + bytes_out)'
        """
        match = _CALL.match(text.strip())
        if match is None or match["name"] not in set(Kind):
            raise ValueError(f"{text!r} is not a way; there are usage(…), even(…), proportional, owner, unallocated")
        kind = Kind(match["name"])
        given = match["arguments"]
        arguments = tuple(part.strip() for part in given.split("+")) if given else ()
        if kind is Kind.USAGE:
            if not arguments or not all(_MEASURE.match(measure) for measure in arguments):
                raise ValueError(f"{text!r}: usage(…) takes measures, such as usage(bytes_in + bytes_out)")
        elif kind is Kind.EVEN:
            if len(arguments) != 1 or arguments[0] not in EVEN_SCOPES:
                raise ValueError(f"{text!r}: even(…) takes one of {', '.join(EVEN_SCOPES)}")
        elif given is not None:
            raise ValueError(f"{text!r}: {kind} takes nothing in parentheses")
        return cls(kind, arguments)


@dataclass(frozen=True, slots=True)
class Portion:
    """A share of the cost (``0 < share ≤ 1``) and the chain of ways that is tried for it."""

    share: Decimal
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """How the lines of one product type are split. The portions' shares sum to exactly one."""

    portions: tuple[Portion, ...]

    @property
    def hash(self) -> str:
        """A short text that is the same for the same policy; every row carries that of its own."""
        spelt = ";".join(f"{p.share.normalize():f}:{','.join(map(str, p.ways))}" for p in self.portions)
        return hashlib.blake2b(spelt.encode(), digest_size=6).hexdigest()

    @property
    def measures(self) -> frozenset[str]:
        """Every measure that some way of the policy asks for."""
        return frozenset(
            measure
            for portion in self.portions
            for way in portion.ways
            if way.kind is Kind.USAGE
            for measure in way.arguments
        )

    @property
    def is_proportional(self) -> bool:
        """Whether the policy follows what the other lines of the day were charged."""
        return any(way.kind is Kind.PROPORTIONAL for portion in self.portions for way in portion.ways)


#: What happens to a product type that no policy names.
UNKNOWN = Policy((Portion(Decimal(1), (Way(Kind.UNALLOCATED),)),))


@dataclass(frozen=True)
class PolicyCatalogue:
    """The policies of an ecosystem or a tenant.

    ``policies`` maps a product type, or a pattern such as ``CONNECT_*``, to its policy; an exact name wins over a
    pattern and a longer pattern over a shorter. ``aliases`` maps other spellings to the name used here.
    """

    policies: Mapping[str, Policy]
    aliases: Mapping[str, str]

    def find(self, product_type: str) -> Policy | None:
        """The policy of a product type, or none for one that nobody has heard of."""
        name = self.aliases.get(product_type, product_type)
        if name in self.policies:
            return self.policies[name]
        matching = [pattern for pattern in self.policies if fnmatchcase(name, pattern)]
        return self.policies[max(matching, key=len)] if matching else None

    def override(self, policies: Mapping[str, Policy]) -> PolicyCatalogue:
        """The same catalogue with some policies replaced or added; an alias overrides what it stands for."""
        renamed = {self.aliases.get(name, name): policy for name, policy in policies.items()}
        return PolicyCatalogue({**self.policies, **renamed}, self.aliases)

    @property
    def measures(self) -> frozenset[str]:
        """Every measure that the catalogue may ask for."""
        return frozenset().union(*(policy.measures for policy in self.policies.values()))


def parse_policies(spelt: Mapping[str, Any], path: str) -> dict[str, Policy]:
    """Policies from their written form (see the module), with every mistake reported at its path.

    Raises:
        ConfigurationError: something in it is no policy.
    """
    problems: list[Problem] = []
    policies = {name: _parse_policy(value, f"{path}.{name}", problems) for name, value in spelt.items()}
    if problems:
        raise ConfigurationError(problems)
    return policies


def _parse_policy(spelt: Any, path: str, problems: list[Problem]) -> Policy:
    portions = spelt.get("portions") if isinstance(spelt, Mapping) else None
    if not isinstance(portions, Sequence) or isinstance(portions, str) or not portions or set(spelt) != {"portions"}:
        problems.append(Problem(path, "a policy is `portions:`, a list of {share, try}"))
        return UNKNOWN
    before = len(problems)
    parsed = [_parse_portion(each, f"{path}.portions[{n}]", problems) for n, each in enumerate(portions)]
    policy = Policy(tuple(parsed))
    total = sum((portion.share for portion in parsed), Decimal(0))
    if total != 1 and len(problems) == before:
        problems.append(Problem(path, f"the shares of its portions sum to {total}, not to 1"))
    return policy


def _parse_portion(spelt: Any, path: str, problems: list[Problem]) -> Portion:
    if not isinstance(spelt, Mapping) or set(spelt) != {"share", "try"}:
        problems.append(Problem(path, "a portion has exactly `share` and `try`"))
        return UNKNOWN.portions[0]
    return Portion(
        _parse_share(spelt["share"], f"{path}.share", problems),
        _parse_ways(spelt["try"], f"{path}.try", problems),
    )


def _parse_share(spelt: Any, path: str, problems: list[Problem]) -> Decimal:
    try:
        share = parse_decimal(str(spelt))
    except ValueError as error:
        problems.append(Problem(path, str(error)))
        return Decimal(1)
    if not 0 < share <= 1 or share != round(share, 12):
        problems.append(Problem(path, f"{spelt} is not above 0, at most 1 and of at most 12 decimals"))
    return share


def _parse_ways(spelt: Any, path: str, problems: list[Problem]) -> tuple[Way, ...]:
    if not isinstance(spelt, Sequence) or isinstance(spelt, str) or not spelt:
        problems.append(Problem(path, "the chain is a list of ways, such as [even(active), unallocated]"))
        return ()
    ways: list[Way] = []
    for position, text in enumerate(spelt):
        try:
            ways.append(Way.parse(str(text)))
        except ValueError as error:
            problems.append(Problem(f"{path}[{position}]", str(error)))
    return with_ending(ways)


def with_ending(ways: Iterable[Way]) -> tuple[Way, ...]:
    """The chain with ``unallocated`` as its last way, so that no cost can be left without a taker."""
    chain = tuple(way for way in ways if way.kind is not Kind.UNALLOCATED)
    return (*chain, Way(Kind.UNALLOCATED))
