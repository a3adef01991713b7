"""Which value of a cost category every subject has on every day, and why.

A subject is what the rules can see of a row of costs: its identity, resource, environment, topic and product. Rows with
the same subject have the same outcome on the same day, so that the rules are resolved once per subject and joined to
the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow as pa

from chargeback.categories.compiled import ENTITY_COLUMNS, CompiledRules, Names, Subject, Tags, effective_match
from chargeback.categories.document import CostCategory
from chargeback.categories.matching import COLUMNS_OF_SUBJECT, tests_of
from chargeback.categories.timeline import Span, TagsOn, common, day_number, without
from chargeback.categories.weights import Outcome

__all__ = [
    "SUBJECTS",
    "Names",
    "Outcome",
    "Resolved",
    "RuleName",
    "SubjectAssignment",
    "Tags",
    "outcome_of",
    "resolve",
    "used_columns",
]

#: The columns of a row that rules can see.
SUBJECTS: Final = ("identity_id", "resource_id", "environment_id", "topic_name", "product_type", "product_category")
_ROWS_BETWEEN_CHECKS: Final = 10_000
_DATES: Final = (pa.field("first_day", pa.date32()), pa.field("end_day", pa.date32()), pa.field("outcome", pa.int32()))


@dataclass(frozen=True)
class Resolved:
    """The outcome of every subject on every day.

    ``periods`` has the subjects' columns, ``first_day`` and ``end_day`` (exclusive; 0001-01-01 and 9999-12-31 where
    there is no limit) and ``outcome``, a place in ``outcomes``. The periods of a subject cover all of time without
    overlapping, in order, and neighbours differ. Without columns there is one subject, which stands for all rows.
    """

    periods: pa.Table
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class RuleName:
    """A rule: its place, its id (``rules[3]`` where it has none), and its reason."""

    index: int
    id: str
    reason: str | None


@dataclass(frozen=True)
class SubjectAssignment:
    """What one subject is assigned on one day.

    ``parts`` are as in :class:`Outcome`; ``paths`` has for each of them the value, its parent, and so on up. ``rule``
    is None for the default. ``lost`` are the rules after it that would have applied, in their order.
    """

    parts: tuple[tuple[str, int], ...]
    paths: tuple[tuple[str, ...], ...]
    rule: RuleName | None
    lost: tuple[RuleName, ...]


def used_columns(category: CostCategory) -> tuple[str, ...]:
    """Return the columns that the rules can see, in the order of :data:`SUBJECTS`."""
    tests = (test for rule in category.rules for test in tests_of(effective_match(rule)))
    used = {column for test in tests for column in COLUMNS_OF_SUBJECT[test.subject]}
    return tuple(column for column in SUBJECTS if column in used)


def rule_name(category: CostCategory, place: int) -> RuleName:
    """Return what a rule is called."""
    return RuleName(place, category.rule_id(place), category.rules[place].reason)


def resolve(
    category: CostCategory,
    subjects: pa.Table,
    tags: Tags,
    names: Names,
    check: Callable[[], object] = lambda: None,
) -> Resolved:
    """Return the outcome of every subject on every day.

    ``subjects`` has distinct rows with exactly the :func:`used_columns`, texts or null. ``check`` is called again and
    again: what it raises ends the work.
    """
    resolver = Resolver(category, subjects, tags, names, check)
    rows: list[int] = []
    firsts: list[int] = []
    ends: list[int] = []
    outcomes: list[int] = []
    for row in range(resolver.rows):
        if row % _ROWS_BETWEEN_CHECKS == 0:
            check()
        for first, end, outcome in resolver.periods(row):
            rows.append(row)
            firsts.append(first)
            ends.append(end)
            outcomes.append(outcome)
    columns = [subjects[name].take(pa.array(rows, pa.int64())) for name in resolver.columns]
    days = [pa.array(each, pa.int32()).cast(pa.date32()) for each in (firsts, ends)]
    schema = pa.schema([*(subjects.schema.field(name) for name in resolver.columns), *_DATES])
    periods = pa.Table.from_arrays([*columns, *days, pa.array(outcomes, pa.int32())], schema=schema)
    return Resolved(periods, tuple(resolver.rules.outcomes))


def outcome_of(category: CostCategory, subject: Subject, day: date, tags: Tags, names: Names) -> SubjectAssignment:
    """Return the value of a subject on a day, the rule that assigns it, and later rules that would have applied."""
    columns = {name: pa.array([subject.get(name)], pa.string()) for name in used_columns(category)}
    resolver = Resolver(category, pa.table(columns), tags, names)
    applied = list(resolver.on_day(0, day_number(day)))
    outcome = resolver.rules.outcomes[applied[0][1] if applied else 0]
    paths = tuple(category.path(value, day) for value, _ in outcome.parts)
    rules = tuple(rule_name(category, place) for place, _ in applied)
    return SubjectAssignment(outcome.parts, paths, rules[0] if rules else None, rules[1:])


class Resolver:
    """The compiled rules of a category and a table of subjects."""

    def __init__(
        self,
        category: CostCategory,
        subjects: pa.Table,
        tags: Tags,
        names: Names,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self.columns = used_columns(category)
        self._texts = {name: subjects[name].cast(pa.string()).to_pylist() for name in self.columns}
        self.rows = subjects.num_rows if self.columns else 1
        distinct = {name: {text for text in texts if text is not None} for name, texts in self._texts.items()}
        self.rules = CompiledRules(category, distinct, tags, names, check)
        self._bits = [self.rules.bits_of_all] * self.rows
        for name in self.columns:
            of_text = self.rules.bits_of_text(name)
            self._bits = [bits | of_text.get(text, 0) for bits, text in zip(self._bits, self._texts[name], strict=True)]
        empty = [None] * self.rows
        self._entities = [self._texts.get(name, empty) for name in ENTITY_COLUMNS.values()]
        self._known: dict[tuple[int, int, int, tuple[tuple[str, str], ...]], list[tuple[int, int, int]]] = {}

    def subject(self, row: int) -> Subject:
        """Return a row of the subjects."""
        return {name: texts[row] for name, texts in self._texts.items()}

    def states(self, row: int) -> list[tuple[int, TagsOn]]:
        """Return the bits of a subject with its tags, for spans that cover all of time in order."""
        identities, resources = self._entities
        bits = self._bits[row]
        tagged = self.rules.tags_of(identities[row], resources[row])
        return [(bits | self.rules.bits_of_tags(during[2]), during) for during in tagged]

    def periods(self, row: int) -> list[tuple[int, int, int]]:
        """Return (first, end, outcome) of a subject, covering all of time; neighbours differ."""
        states = self.states(row)
        if len(states) == 1:
            return self._pieces(row, *states[0])
        return _merged(piece for bits, during in states for piece in self._pieces(row, bits, during))

    def on_day(self, row: int, day: int) -> Iterator[tuple[int, int]]:
        """Yield (rule, outcome) of every rule that applies to a subject on a day, the deciding one first."""
        for bits, during in self.states(row):
            if during[0] <= day < during[1]:
                for applied in self.rules.applications(bits, self.subject(row), during):
                    if applied.span[0] <= day < applied.span[1]:
                        yield applied.rule, applied.outcome

    def _pieces(self, row: int, bits: int, during: TagsOn) -> list[tuple[int, int, int]]:
        if self.rules.reads_texts(bits):
            return self._decided(bits, self.subject(row), during)
        state = (bits, during[0], during[1], tuple(during[2].items()))
        if (known := self._known.get(state)) is None:
            known = self._known[state] = self._decided(bits, {}, during)
        return known

    def _decided(self, bits: int, subject: Subject, during: TagsOn) -> list[tuple[int, int, int]]:
        """Return what the first rule that applies on each day of a span decides; neighbours differ."""
        whole = during[:2]
        left: list[Span] = [whole]
        decided: list[tuple[int, int, int]] = []
        for applied in self.rules.applications(bits, subject, during):
            if applied.span == whole and not decided:  # the most frequent case
                return [(*whole, applied.outcome)]
            here = [both for span in left if (both := common(span, applied.span))]
            decided.extend((first, end, applied.outcome) for first, end in here)
            left = without(left, applied.span)
            if not left:
                break
        decided.extend((first, end, 0) for first, end in left)
        return _merged(sorted(decided))


def _merged(pieces: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    merged: list[tuple[int, int, int]] = []
    for first, end, outcome in pieces:
        if merged and merged[-1][2] == outcome:
            merged[-1] = (merged[-1][0], end, outcome)
        else:
            merged.append((first, end, outcome))
    return merged
