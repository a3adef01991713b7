"""Policies: how a product type is split, as data that users can read, override and try out.

A policy turns one billing line into *portions*. Each portion has a share of the cost and a chain of allocation
methods; the first method that finds an identity is used. In YAML::

    KAFKA_NUM_CKUS:
      portions:
        - share: "0.70"
          try: [usage(bytes_in + bytes_out), even(active), even(period), unallocated]
        - share: "0.30"
          try: [even(active), even(period), unallocated]

A tenant's own policies may be a list of versions instead: each is in force from its ``effective_from``, a UTC day,
until the next one begins; one without is in force where no other says something about a product type.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final

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
class PolicyVersion:
    """The policies that a tenant has from a UTC day on until the next version begins, and why.

    Those of other product types are what they would be without it. A version that has calculated a day is not changed
    any more: its ``hash`` is recorded with the day.
    """

    effective_from: date
    reason: str
    policies: Mapping[str, Policy]

    @cached_property
    def hash(self) -> str:
        """Return a short text that is the same for equal policies, for any first day and any order."""
        return policies_hash(self.policies)


class OwnPolicies(dict[str, Policy]):
    """The policies of a tenant's configuration: those that have no date, by product type or pattern, and the
    ``versions`` that do, ascending."""

    versions: tuple[PolicyVersion, ...] = ()

    @property
    def names(self) -> list[str]:
        """All product types and patterns, in order."""
        return list(dict.fromkeys([*self, *(name for each in self.versions for name in each.policies)]))

    @property
    def measures(self) -> frozenset[str]:
        """Every measure that one of the policies needs."""
        return _measures(self, *(each.policies for each in self.versions))


@dataclass(frozen=True)
class PolicyCatalogue:
    """The policies of an ecosystem or a tenant.

    ``policies`` maps a product type, or a pattern such as ``CONNECT_*``, to its policy; an exact name wins over a
    pattern and a longer pattern over a shorter. ``aliases`` maps other spellings to the name used here. What holds on a
    day is what :meth:`on` returns: the ``versions`` of a tenant's configuration, ascending by day, go before. ``eras``,
    ascending, too, are the ``policies`` of the days before an upgrade changed them, and after.
    """

    policies: Mapping[str, Policy]
    aliases: Mapping[str, str]
    versions: tuple[PolicyVersion, ...] = ()
    eras: tuple[PolicyVersion, ...] = ()

    def version_on(self, day: date) -> PolicyVersion | None:
        """Return the version that is in force on a UTC day; None where none has begun."""
        return _begun(self.versions, day)

    def version_hash(self, day: date) -> str | None:
        """Return the hash of the version that is in force on a UTC day; None where none has begun."""
        version = self.version_on(day)
        return None if version is None else version.hash

    def on(self, day: date) -> PolicyCatalogue:
        """Return the policies of a UTC day."""
        version, era = self.version_on(day), _begun(self.eras, day)
        found = PolicyCatalogue(self.policies if era is None else era.policies, self.aliases)
        return found if version is None else found.override(version.policies)

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
        """Return the catalogue with some policies replaced or added; an alias overrides the name it stands for. Where
        they have versions, these are the catalogue's."""
        renamed = {self.aliases.get(name, name): policy for name, policy in policies.items()}
        versions = policies.versions if isinstance(policies, OwnPolicies) else self.versions
        eras = tuple(replace(each, policies={**each.policies, **renamed}) for each in self.eras)
        return PolicyCatalogue({**self.policies, **renamed}, self.aliases, versions, eras)

    def with_shipped(
        self, shipped: Sequence[PolicyVersion], present: Mapping[str, Policy], own: Iterable[str] = ()
    ) -> PolicyCatalogue:
        """Return the catalogue with what an ecosystem shipped on earlier days, ascending, the first one from ever on.

        ``present`` is what it ships now. What the tenant itself says (``own``), or makes of the shipped policies by
        other settings, is the same on all days; so is the policy of a product type that had none before.
        """
        if all(each.hash == policies_hash(present) for each in shipped):
            return self
        said = {self.aliases.get(name, name) for name in own}
        theirs = {
            name
            for name, policy in self.policies.items()
            if name not in said and name in present and present[name].hash == policy.hash
        }

        def of_era(then: Mapping[str, Policy]) -> dict[str, Policy]:
            kept = {
                name: policy
                for name, policy in self.policies.items()
                if name not in theirs or best_match(name, then) is None
            }
            return kept | {name: policy for name, policy in then.items() if name in theirs or name not in self.policies}

        return replace(self, eras=tuple(replace(each, policies=of_era(each.policies)) for each in shipped))

    def only(self, names: Collection[str], present: PolicyCatalogue) -> PolicyCatalogue:
        """Return the ``present`` catalogue with what this one says of some names, on every day."""

        def chosen(day: date | None) -> dict[str, Policy]:
            mine = self.undated if day is None else self.on(day)
            return {name: mine.find(name) or UNKNOWN for name in names}

        days = sorted({each.effective_from for each in (*self.versions, *present.versions, *self.eras)})
        versions = []
        for day in days:
            version = present.version_on(day)
            own = {} if version is None else version.policies
            versions.append(PolicyVersion(day, "" if version is None else version.reason, {**own, **chosen(day)}))
        return replace(present.undated.override(chosen(None)), versions=tuple(versions))

    @cached_property
    def hash(self) -> str:
        """A short text that is the same for catalogues that have the same policies for everything."""
        versions = [(each.effective_from.isoformat(), each.hash) for each in self.versions]
        eras = [(each.effective_from.isoformat(), each.hash) for each in self.eras]
        text = json.dumps([policies_hash(self.policies), sorted(self.aliases.items()), versions, *eras])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def undated(self) -> PolicyCatalogue:
        """What holds where no version has begun."""
        return replace(self, versions=())

    @property
    def measures(self) -> frozenset[str]:
        """Return every measure that a policy of the catalogue needs, on any day."""
        return _measures(self.policies, *(each.policies for each in (*self.versions, *self.eras)))


def _begun(versions: Sequence[PolicyVersion], day: date) -> PolicyVersion | None:
    return next((each for each in reversed(versions) if each.effective_from <= day), None)


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


def _measures(*policies: Mapping[str, Policy]) -> frozenset[str]:
    return frozenset[str]().union(*(policy.measures for some in policies for policy in some.values()))


def parse_policies(section: Mapping[str, Any] | Sequence[Any], path: str) -> OwnPolicies:
    """Parse policies, or versions of them, from their YAML form (see the module); report every mistake at its path.

    Raises:
        ConfigurationError: a policy is not valid, or two versions begin on the same day.
    """
    problems: list[ConfigProblem] = []
    policies = OwnPolicies()
    if isinstance(section, Mapping):
        policies.update(_parse_section(section, path, problems))
    else:
        policies = _parse_versions(section, path, problems)
    if problems:
        raise ConfigurationError(problems)
    return policies


def _parse_section(section: Mapping[str, Any], path: str, problems: list[ConfigProblem]) -> dict[str, Policy]:
    return {name: _parse_policy(value, f"{path}.{name}", problems) for name, value in section.items()}


def with_versions(section: Mapping[str, Any] | Sequence[Any], versions: Sequence[Mapping[str, Any]]) -> Any:
    """Return policies in their YAML form with some versions added, each in the place of one of the same day."""
    if not versions:
        return section
    days = {str(each["effective_from"]) for each in versions}
    own: list[Any] = list(section) if not isinstance(section, Mapping) else [{"policies": section}] if section else []
    kept = [each for each in own if not isinstance(each, Mapping) or str(each.get("effective_from")) not in days]
    return [*kept, *versions]


_VERSION_KEYS: Final = {"effective_from", "reason", "policies"}


def _parse_versions(section: Sequence[Any], path: str, problems: list[ConfigProblem]) -> OwnPolicies:
    undated: dict[str, Policy] | None = None
    versions: dict[date, PolicyVersion] = {}
    for number, raw in enumerate(section):
        place = f"{path}[{number}]"
        known = isinstance(raw, Mapping) and set(raw) <= _VERSION_KEYS
        if not known or not isinstance(raw.get("policies"), Mapping):
            problems.append(ConfigProblem(place, "a version has `policies`, a mapping, `effective_from` and `reason`"))
            continue
        policies = _parse_section(raw["policies"], f"{place}.policies", problems)
        if raw.get("effective_from") is None:
            if undated is not None:
                problems.append(ConfigProblem(place, "only one version may be without `effective_from`"))
            undated = policies
            continue
        day, reason = _parse_day(raw["effective_from"]), raw.get("reason")
        if day is None:
            text = f"{raw['effective_from']} should be a UTC day, such as 2026-12-01"
            problems.append(ConfigProblem(f"{place}.effective_from", text))
            continue
        if not isinstance(reason, str) or not reason.strip():
            problems.append(ConfigProblem(f"{place}.reason", "should say in a sentence why the policies change"))
            continue
        if day in versions:
            problems.append(ConfigProblem(f"{place}.effective_from", f"another version begins on {day}, too"))
        versions[day] = PolicyVersion(day, reason.strip(), policies)
    own = OwnPolicies(undated or {})
    own.versions = tuple(versions[day] for day in sorted(versions))
    return own


def _parse_day(raw: Any) -> date | None:
    """Return a UTC day, as YAML or text has it; None if it is something else."""
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return raw
    try:
        return date.fromisoformat(raw) if isinstance(raw, str) else None
    except ValueError:
        return None


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
