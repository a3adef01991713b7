"""What is probably wrong with a category's rules, found on the subjects of a tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from chargeback.categories.compiled import Application, Names, Tags, rule_span
from chargeback.categories.document import CostCategory
from chargeback.categories.resolve import Resolver, RuleName, rule_name
from chargeback.categories.timeline import Span, common, without


@dataclass(frozen=True)
class NeverMatching:
    """A rule that applies to no subject on any day, and why."""

    rule: RuleName
    why: str


@dataclass(frozen=True)
class Shadowed:
    """A rule that matches, but only where a rule before it decides; ``by`` are these rules, in their order."""

    rule: RuleName
    by: tuple[RuleName, ...]


@dataclass(frozen=True)
class Overlap:
    """Two rules that apply to the same subjects on the same days with different values; ``winner`` decides.
    ``subjects`` is how many there are."""

    winner: RuleName
    loser: RuleName
    subjects: int


@dataclass(frozen=True)
class UnknownValue:
    """A value that a rule takes from a tag, or makes from a template, and that is not in the register."""

    value: str
    rule: RuleName


@dataclass(frozen=True)
class Analysis:
    """The findings about a category; rules are in the order of the document."""

    never_matching: tuple[NeverMatching, ...]
    shadowed: tuple[Shadowed, ...]
    overlaps: tuple[Overlap, ...]
    unknown_values: tuple[UnknownValue, ...]


@dataclass
class _Seen:
    """What was seen of the rules: which apply, which decide, and (winner, loser) with the number of subjects."""

    applied: set[int] = field(default_factory=set)
    decided: set[int] = field(default_factory=set)
    beaten: Counter[tuple[int, int]] = field(default_factory=Counter)
    differing: Counter[tuple[int, int]] = field(default_factory=Counter)


def analyse(category: CostCategory, subjects: pa.Table, tags: Tags, names: Names) -> Analysis:
    """Return what is probably wrong with the rules; the arguments are those of
    :func:`chargeback.categories.resolve.resolve`."""
    resolver = Resolver(category, subjects, tags, names)
    seen = _look(resolver)
    named = [rule_name(category, place) for place in range(len(category.rules))]
    winners = _winners(seen, named)
    return Analysis(
        tuple(NeverMatching(rule, _why(category, rule.index)) for rule in named if rule.index not in seen.applied),
        tuple(
            Shadowed(rule, tuple(winners[rule.index])) for rule in named if rule.index in seen.applied - seen.decided
        ),
        tuple(Overlap(named[winner], named[loser], count) for (winner, loser), count in sorted(seen.differing.items())),
        tuple(UnknownValue(value, named[rule]) for rule, value in sorted(resolver.rules.unknown)),
    )


def _winners(seen: _Seen, named: list[RuleName]) -> dict[int, list[RuleName]]:
    winners: dict[int, list[RuleName]] = {}
    for winner, loser in sorted(seen.beaten):
        winners.setdefault(loser, []).append(named[winner])
    return winners


def _why(category: CostCategory, place: int) -> str:
    if rule_span(category, category.rules[place]) is None:
        return "its dates and those of its values have no day in common"
    return "nothing matches it on the days on which it is valid"


def _look(resolver: Resolver) -> _Seen:
    """Apply every rule to every subject; subjects that look the same to the rules are counted together."""
    seen = _Seen()
    alike: Counter[tuple[tuple[Application, ...], ...]] = Counter()
    for row in range(resolver.rows):
        alike[tuple(tuple(applications) for applications in _applications(resolver, row))] += 1
    for spans, subjects in alike.items():
        pairs: set[tuple[Application, Application]] = set()
        for applications in spans:
            pairs.update(_contests(applications, seen))
        seen.beaten.update({(winner.rule, loser.rule): subjects for winner, loser in pairs})
        parts = [outcome.parts for outcome in resolver.rules.outcomes]
        differing = {
            (winner.rule, loser.rule) for winner, loser in pairs if parts[winner.outcome] != parts[loser.outcome]
        }
        seen.differing.update(dict.fromkeys(differing, subjects))
    return seen


def _applications(resolver: Resolver, row: int) -> Iterator[Iterator[Application]]:
    subject = resolver.subject(row)
    for bits, during in resolver.states(row):
        yield resolver.rules.applications(bits, subject, during)


def _contests(applications: tuple[Application, ...], seen: _Seen) -> Iterator[tuple[Application, Application]]:
    """Note which rules apply and decide; yield (winner, loser) where a rule loses days to one before it."""
    decided: list[tuple[Application, list[Span]]] = []
    for applied in applications:
        left = [applied.span]
        for winner, spans in decided:
            if any(common(span, applied.span) for span in spans):
                yield winner, applied
            for span in spans:
                left = without(left, span)
        seen.applied.add(applied.rule)
        if left:
            seen.decided.add(applied.rule)
            decided.append((applied, left))
