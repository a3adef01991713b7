"""Policies: how a product type is split, as data that users can read, override and try out.

A policy turns one billing line into *portions*. Each portion has a share of the cost and a chain of allocation
methods; the first method that finds an identity is used. In YAML::

    KAFKA_NUM_CKUS:
      portions:
        - share: "0.70"
          try: [usage(bytes_in + bytes_out), even(active), even(period), unallocated]
        - share: "0.30"
          try: [even(active), even(period), unallocated]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from chargeback.allocation.methods import UNALLOCATED, AllocationMethod, MethodKind
from chargeback.errors import ConfigProblem, ConfigurationError
from chargeback.model.money import parse_decimal


@dataclass(frozen=True, slots=True)
class Portion:
    """A share of the cost (``0 < share ≤ 1``) and the chain of methods to try for it."""

    share: Decimal
    methods: tuple[AllocationMethod, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """How the lines of one product type are split. The portions' shares sum to exactly 1."""

    portions: tuple[Portion, ...]

    @property
    def hash(self) -> str:
        """A short text that is the same for equal policies; every row has that of its policy."""
        text = ";".join(f"{p.share.normalize():f}:{','.join(map(str, p.methods))}" for p in self.portions)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def text(self) -> str:
        """The policy as JSON, in the form that :func:`parse_policies` accepts."""
        portions = [
            {"share": f"{p.share.normalize():f}", "try": [str(each) for each in p.methods]} for p in self.portions
        ]
        return json.dumps({"portions": portions})

    @property
    def measures(self) -> frozenset[str]:
        """Every measure that a method of the policy needs."""
        return frozenset(
            measure
            for portion in self.portions
            for method in portion.methods
            if method.kind is MethodKind.USAGE
            for measure in method.arguments
        )

    @property
    def is_proportional(self) -> bool:
        """Return whether the policy splits like the charges of the day's other lines."""
        return any(method.kind is MethodKind.PROPORTIONAL for portion in self.portions for method in portion.methods)


#: The policy of unknown product types.
UNKNOWN = Policy((Portion(Decimal(1), (UNALLOCATED,)),))


@dataclass(frozen=True)
class PolicyCatalogue:
    """The policies of an ecosystem or a tenant.

    ``policies`` maps a product type, or a pattern such as ``CONNECT_*``, to its policy; an exact name wins over a
    pattern and a longer pattern over a shorter. ``aliases`` maps other spellings to the name used here.
    """

    policies: Mapping[str, Policy]
    aliases: Mapping[str, str]

    def find(self, product_type: str) -> Policy | None:
        """Return the policy of a product type, or None if it is unknown."""
        matched = self.match(product_type)
        return None if matched is None else self.policies[matched]

    def match(self, product_type: str) -> str | None:
        """Return the name or pattern whose policy a product type has, or None if it is unknown."""
        name = self.aliases.get(product_type, product_type)
        return best_match(name, self.policies)

    def policies_of(self, product_types: Iterable[str]) -> dict[str, Policy]:
        """Return the policy by which each product type is split: :data:`UNKNOWN` if the catalogue has none."""
        return {name: self.find(name) or UNKNOWN for name in product_types}

    def override(self, policies: Mapping[str, Policy]) -> PolicyCatalogue:
        """Return the catalogue with some policies replaced or added; an alias overrides the name it stands for."""
        renamed = {self.aliases.get(name, name): policy for name, policy in policies.items()}
        return PolicyCatalogue({**self.policies, **renamed}, self.aliases)

    @cached_property
    def hash(self) -> str:
        """A short text that is the same for catalogues that have the same policies for everything."""
        text = json.dumps([policies_hash(self.policies), sorted(self.aliases.items())])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def measures(self) -> frozenset[str]:
        """Every measure that a policy of the catalogue needs."""
        return frozenset().union(*(policy.measures for policy in self.policies.values()))


def best_match(name: str, patterns: Collection[str]) -> str | None:
    """Return which of some names or patterns applies to a name: itself, else the longest matching pattern; None if
    none matches.

    >>> best_match("CONNECT_TASKS", ["CONNECT_*", "*"])
    'CONNECT_*'
    """
    if name in patterns:
        return name
    return max((pattern for pattern in patterns if fnmatchcase(name, pattern)), key=len, default=None)


def policies_hash(policies: Mapping[str, Policy]) -> str:
    """Return a short text that is the same for the same policies of the same product types."""
    text = "\n".join(f"{name}={policy.hash}" for name, policy in sorted(policies.items()))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def parse_policies(section: Mapping[str, Any], path: str) -> dict[str, Policy]:
    """Parse policies from their YAML form (see the module); report every mistake at its path.

    Raises:
        ConfigurationError: a policy is not valid.
    """
    problems: list[ConfigProblem] = []
    policies = {name: _parse_policy(value, f"{path}.{name}", problems) for name, value in section.items()}
    if problems:
        raise ConfigurationError(problems)
    return policies


def _parse_policy(raw: Any, path: str, problems: list[ConfigProblem]) -> Policy:
    portions = raw.get("portions") if isinstance(raw, Mapping) else None
    if not isinstance(portions, Sequence) or isinstance(portions, str) or not portions or set(raw) != {"portions"}:
        problems.append(ConfigProblem(path, "a policy is `portions:`, a list of {share, try}"))
        return UNKNOWN
    before = len(problems)
    parsed = [_parse_portion(each, f"{path}.portions[{n}]", problems) for n, each in enumerate(portions)]
    policy = Policy(tuple(parsed))
    total = sum((portion.share for portion in parsed), Decimal(0))
    if total != 1 and len(problems) == before:
        problems.append(ConfigProblem(path, f"the shares of its portions sum to {total}, not to 1"))
    return policy


def _parse_portion(raw: Any, path: str, problems: list[ConfigProblem]) -> Portion:
    if not isinstance(raw, Mapping) or set(raw) != {"share", "try"}:
        problems.append(ConfigProblem(path, "a portion has exactly `share` and `try`"))
        return UNKNOWN.portions[0]
    return Portion(
        _parse_share(raw["share"], f"{path}.share", problems),
        _parse_methods(raw["try"], f"{path}.try", problems),
    )


def _parse_share(raw: Any, path: str, problems: list[ConfigProblem]) -> Decimal:
    try:
        share = parse_decimal(str(raw))
    except ValueError as error:
        problems.append(ConfigProblem(path, str(error)))
        return Decimal(1)
    if not 0 < share <= 1 or share != round(share, 12):
        problems.append(ConfigProblem(path, f"{raw} must be above 0, at most 1, and have at most 12 decimals"))
    return share


def _parse_methods(raw: Any, path: str, problems: list[ConfigProblem]) -> tuple[AllocationMethod, ...]:
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not raw:
        problems.append(ConfigProblem(path, "the chain is a list of methods, such as [even(active), unallocated]"))
        return ()
    methods: list[AllocationMethod] = []
    for position, text in enumerate(raw):
        try:
            methods.append(AllocationMethod.parse(str(text)))
        except ValueError as error:
            problems.append(ConfigProblem(f"{path}[{position}]", str(error)))
    return with_fallback(methods)


def with_fallback(methods: Iterable[AllocationMethod]) -> tuple[AllocationMethod, ...]:
    """Return the chain with ``unallocated`` as its last method, so that every cost has a target."""
    return (*(method for method in methods if method != UNALLOCATED), UNALLOCATED)
