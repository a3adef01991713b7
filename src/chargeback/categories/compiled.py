"""The rules of a category, compiled for a set of subjects.

Every rule has a bit, and so has every test of a rule that is more than a list of alternatives. Each distinct text of a
column (or name, or tag value) has the bits of the tests that it passes; the bits of a row are those of its texts
together. A rule whose bit is not set does not match. Where it is set, the rule matches, except that rules with ``all``
or ``not`` are then evaluated on the bits of their tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from chargeback.categories.document import Assignment, Constant, CostCategory, FromTag, Rule, Split, Template
from chargeback.categories.matching import (
    COLUMNS_OF_SUBJECT,
    All,
    AnyOf,
    Match,
    Not,
    Test,
    Texts,
    captures,
    capturing_tests,
    matching_texts,
    tests_of,
)
from chargeback.categories.timeline import UNTAGGED, Span, TagsOn, common, overlaid, span_of, tags_by_span
from chargeback.categories.weights import Outcome, weights_of
from chargeback.model.dated import DatedValue
from chargeback.model.inventory import NO_VALUES

_T = TypeVar("_T")
#: A subject: the texts of its columns, by the columns' names.
Subject: TypeAlias = Mapping[str, str | None]
#: By subject, see :func:`_breadth`; 1 for all others.
_BREADTH = {"resource": 3, "cluster": 4, "tag": 4, "product_type": 6, "environment": 8, "product_category": 8}
_BREADTH_OF_ANY = 20
CLUSTER: Final = "cluster"
#: The subjects whose texts are in no row.
_BY_INVENTORY: Final = frozenset({"display_name", CLUSTER})
ENTITY_COLUMNS = {"identity": "identity_id", "resource": "resource_id"}


class Tags(Protocol):
    """The tags of a tenant's entities."""

    def holders(self, entity_type: str, key: str) -> Mapping[str, Sequence[DatedValue]]:
        """Return the dated values of tag ``key`` by entity id; ``entity_type`` is ``identity`` or ``resource``."""


class Names(Protocol):
    """The display names of a tenant's entities."""

    def names(self, entity_type: str) -> Mapping[str, str]:
        """Return the display names by entity id; ``entity_type`` is ``identity`` or ``resource``. Of ``cluster``, the
        id of the cluster by that of each resource that lies in one."""


def effective_match(rule: Rule) -> Match:
    """Return the match of a rule, which for ``from_tag`` includes that the row has the tag."""
    if not isinstance(rule.assign, FromTag):
        return rule.match
    if isinstance(rule.match, Test) and rule.match.tag == rule.assign.key:
        return rule.match
    return All((rule.match, Test("tag", None, rule.assign.key)))


def assigned_values(assign: Assignment) -> tuple[str, ...]:
    """Return the values that an assignment names."""
    if isinstance(assign, Constant):
        return (assign.value,)
    return tuple(value for value, _ in assign.percentages) if isinstance(assign, Split) else ()


def rule_span(category: CostCategory, rule: Rule) -> Span | None:
    """Return the days on which a rule can apply: its own, and those of every value that it names."""
    span: Span | None = span_of(rule.during)
    for value in assigned_values(rule.assign):
        span = span and common(span, span_of(category.validity(value)))
    return span


@dataclass(frozen=True)
class Application:
    """A rule that matches a subject, the days on which it applies, and the number of its outcome."""

    rule: int
    span: Span
    outcome: int


class CompiledRules:
    """The rules of ``category`` for subjects whose columns have the texts ``columns``.

    ``outcomes`` are numbered; the first is the default. It grows while subjects are resolved. ``unknown`` collects the
    (rule, value) made from tags and templates that are not in the register. ``check`` is called before each test of
    all texts: what it raises ends the work.
    """

    def __init__(
        self,
        category: CostCategory,
        columns: Mapping[str, set[str]],
        tags: Tags,
        names: Names,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self.category = category
        self._check = check
        self.outcomes = [Outcome(((category.default, 1),), None)]
        self.unknown: dict[tuple[int, str], None] = {}
        self._numbers = {self.outcomes[0]: 0}
        self._matches = [effective_match(rule) for rule in category.rules]
        self._spans = [rule_span(category, rule) for rule in category.rules]
        self._static = [self._static_outcome(place, rule) for place, rule in enumerate(category.rules)]
        self._templates = sum(1 << n for n, rule in enumerate(category.rules) if isinstance(rule.assign, Template))
        self._compound: dict[int, Callable[[int], bool]] = {}
        self._applications: dict[tuple[int, str | None, int, int], Application | None] = {}
        self._atoms: dict[Test, int] = {}
        self._bits: dict[Test, int] = {}
        self._always = 0
        for place in range(len(category.rules)):
            self._give_bits(place)
        self._columns = columns
        self._names = {
            kind: _only(names.names(kind), columns.get(column, set())) if self._uses("display_name") else {}
            for kind, column in ENTITY_COLUMNS.items()
        }
        resources = columns.get(ENTITY_COLUMNS["resource"], set())
        self._clusters = _only(names.names(CLUSTER), resources) if self._uses(CLUSTER) else {}
        self._tags = {kind: self._tags_of(kind, tags) for kind in ENTITY_COLUMNS}
        self._text_bits: dict[str, dict[str, int]] = {column: {} for column in columns}
        self._tag_bits: dict[tuple[str, str], int] = {}
        self._captured: dict[Test, dict[str, dict[str, str]]] = {}
        self._match_texts()

    def bits_of_text(self, column: str) -> Mapping[str, int]:
        """Return the bits of the texts of a column; texts that pass no test are absent."""
        return self._text_bits[column]

    @property
    def bits_of_all(self) -> int:
        """The bits that every subject has."""
        return self._always

    def tags_of(self, identity: str | None, resource: str | None) -> Iterable[TagsOn]:
        """Return the tags of a row as spans that cover all of time: the identity's win over the resource's."""
        of_identity = self._tags["identity"].get(identity or "", UNTAGGED)
        of_resource = self._tags["resource"].get(resource or "", UNTAGGED)
        if of_resource is UNTAGGED:
            return of_identity
        return of_resource if of_identity is UNTAGGED else overlaid(of_identity, of_resource)

    def bits_of_tags(self, tags: Mapping[str, str]) -> int:
        """Return the bits of a row's tags."""
        bits = 0
        for tag in tags.items():
            bits |= self._tag_bits.get(tag, 0)
        return bits

    def applications(self, bits: int, subject: Subject, during: TagsOn) -> Iterator[Application]:
        """Yield the rules that match a subject with ``bits`` and the tags of ``during``, in their order.

        ``subject`` is read only by rules that make their value from its texts.
        """
        candidates = bits & ((1 << len(self._matches)) - 1)
        while candidates:
            lowest = candidates & -candidates
            candidates ^= lowest
            place = lowest.bit_length() - 1
            if (holds := self._compound.get(place)) is not None and not holds(bits):
                continue
            if (found := self._applied(place, bits, subject, during)) is not None:
                yield found

    def reads_texts(self, bits: int) -> bool:
        """Return whether a rule that may match makes its value from the texts of the row."""
        return bool(bits & self._templates)

    def _applied(self, place: int, bits: int, subject: Subject, during: TagsOn) -> Application | None:
        made = None
        if self._static[place] is None and (made := self._made_value(place, bits, subject, during[2])) is None:
            return None
        case = (place, made, during[0], during[1])
        if case not in self._applications:
            self._applications[case] = self._application(place, made, during[:2])
        return self._applications[case]

    def _application(self, place: int, made: str | None, during: Span) -> Application | None:
        """Return how a rule that matches applies during a span; ``made`` is its value if it makes it from the row."""
        span, outcome = common(self._spans[place] or (0, 0), during), self._static[place]
        if span is None:
            return None
        if made is not None:
            if not self.category.knows(made):
                self.unknown[place, made] = None
                return None
            outcome = self._number(Outcome(((made, 1),), place))
            span = common(span, span_of(self.category.validity(made)))
        return None if span is None or outcome is None else Application(place, span, outcome)

    def _made_value(self, place: int, bits: int, subject: Subject, tags: Mapping[str, str]) -> str | None:
        """Return the value that a rule takes from a tag or makes from captures; None if it cannot, or if one of these
        says that there is none."""
        assign = self.category.rules[place].assign
        if isinstance(assign, FromTag):
            return _a_value(tags.get(assign.key))
        if not isinstance(assign, Template):
            return None
        captured = self._captures(self._matches[place], bits, subject, tags)
        pieces = [_a_value(captured.get(piece)) if at % 2 else piece for at, piece in enumerate(assign.pieces)]
        return None if None in pieces else _a_value("".join(piece or "" for piece in pieces))

    def _captures(self, match: Match, bits: int, subject: Subject, tags: Mapping[str, str]) -> dict[str, str]:
        """Return what the branches that hold capture; the first capture of a name counts."""
        found: dict[str, str] = {}
        if isinstance(match, Test):
            known = self._captured.get(match, {})
            for text in self._texts(match, subject, tags):
                found = known.get(text, {}) | found
        elif not isinstance(match, Not):
            for child in match.matches:  # alternatives that do not hold capture nothing anyway
                if isinstance(match, All) or _is_alternatives(child) or self._compiled(child)(bits):
                    found = self._captures(child, bits, subject, tags) | found
        return found

    def _texts(self, test: Test, subject: Subject, tags: Mapping[str, str]) -> Iterator[str]:
        """Yield the texts of a row that a test looks at."""
        for text in (tags.get(test.tag),) if test.tag is not None else self._plain_texts(test, subject):
            if text is not None:
                yield text

    def _plain_texts(self, test: Test, subject: Subject) -> Iterator[str | None]:
        if test.subject == CLUSTER:
            yield self._clusters.get(subject.get(ENTITY_COLUMNS["resource"]) or "")
        elif test.subject != "display_name":
            yield subject.get(COLUMNS_OF_SUBJECT[test.subject][0])
        else:
            for kind, column in ENTITY_COLUMNS.items():
                yield self._names[kind].get(subject.get(column) or "")

    def _compiled(self, match: Match) -> Callable[[int], bool]:
        """Return a function of a row's bits that says whether a compound match holds."""
        if isinstance(match, Test):
            return _has_any(self._atoms[match])
        if isinstance(match, Not):
            inner = self._compiled(match.match)
            return lambda bits: not inner(bits)
        own = sum({self._atoms[child] for child in match.matches if isinstance(child, Test)})
        others = [self._compiled(child) for child in match.matches if not isinstance(child, Test)]
        if isinstance(match, All):
            return _all_of(_has_all(own), others)
        return _any_of(_has_any(own), others)

    def _static_outcome(self, place: int, rule: Rule) -> int | None:
        """Return the number of the outcome of a rule that does not depend on the row."""
        if isinstance(rule.assign, Constant):
            return self._number(Outcome(((rule.assign.value, 1),), place))
        if isinstance(rule.assign, Split):
            return self._number(Outcome(weights_of(rule.assign.percentages), place))
        return None

    def _number(self, outcome: Outcome) -> int:
        number = self._numbers.setdefault(outcome, len(self.outcomes))
        if number == len(self.outcomes):
            self.outcomes.append(outcome)
        return number

    def _give_bits(self, place: int) -> None:
        """Give the rule's bit to the tests without which it cannot match, and bits to the tests of a compound rule."""
        if self._spans[place] is None:
            return
        match = self._matches[place]
        needed = necessary_tests(match)
        if needed is None:
            self._always |= 1 << place
        for test in needed or ():
            self._bits[test] = self._bits.get(test, 0) | 1 << place
        if not _is_alternatives(match):
            for test in tests_of(match):
                bit = self._atoms.setdefault(test, 1 << (len(self._matches) + len(self._atoms)))
                self._bits[test] = self._bits.get(test, 0) | bit
            self._compound[place] = self._compiled(match)

    def _uses(self, subject: str) -> bool:
        return any(test.subject == subject for test in self._bits)

    def _tags_of(self, kind: str, tags: Tags) -> dict[str, Sequence[TagsOn]]:
        """Return the tags of the entities in the subjects that rules can see."""
        held: dict[str, dict[str, Sequence[DatedValue]]] = {}
        entities = self._columns.get(ENTITY_COLUMNS[kind], set())
        for key in sorted({test.tag for test in self._bits if test.tag is not None}):
            for entity, values in _only(tags.holders(kind, key), entities).items():
                held.setdefault(entity, {})[key] = values
        known: dict[tuple[tuple[str, Sequence[DatedValue]], ...], Sequence[TagsOn]] = {}
        spans = {}
        for entity, tagged in held.items():
            same = tuple((key, tuple(each)) for key, each in tagged.items())
            if (found := known.get(same)) is None:
                found = known[same] = tags_by_span(tagged)
            spans[entity] = found
        return spans

    def _match_texts(self) -> None:
        """Find the texts that pass each test, and what the templates' regexes capture in them."""
        capturing = {
            test
            for place, match in enumerate(self._matches)
            if isinstance(self.category.rules[place].assign, Template)
            for test in capturing_tests(match)
        }
        known: dict[tuple[str, str | None], Texts] = {}
        for test, bits in self._bits.items():
            self._check()
            source = (test.subject, test.tag)
            texts = known.get(source) or known.setdefault(source, Texts(self._all_texts(test)))
            matching = matching_texts(test.pattern, texts)
            self._set_bits(test, matching, bits)
            if test in capturing and test.pattern is not None and test.pattern.groups:
                self._captured[test] = captures(test.pattern, Texts(matching))
        for kind, column in ENTITY_COLUMNS.items() if self._uses("display_name") else ():
            self._bits_to_ids("display_name", self._names[kind], column)
        if self._uses(CLUSTER):
            self._bits_to_ids(CLUSTER, self._clusters, ENTITY_COLUMNS["resource"])

    def _all_texts(self, test: Test) -> set[str]:
        if test.tag is not None:
            spans = [span for kind in self._tags.values() for each in kind.values() for span in each]
            return {tags[test.tag] for _, _, tags in spans if test.tag in tags}
        if test.subject == "display_name":
            return {name for names in self._names.values() for name in names.values()}
        if test.subject == CLUSTER:
            return set(self._clusters.values())
        return self._columns[COLUMNS_OF_SUBJECT[test.subject][0]]

    def _set_bits(self, test: Test, texts: Iterable[str], bits: int) -> None:
        if test.tag is not None:
            for text in texts:
                self._tag_bits[test.tag, text] = self._tag_bits.get((test.tag, text), 0) | bits
            return
        column = test.subject if test.subject in _BY_INVENTORY else COLUMNS_OF_SUBJECT[test.subject][0]
        of_column = self._text_bits.setdefault(column, {})
        for text in texts:
            of_column[text] = of_column.get(text, 0) | bits

    def _bits_to_ids(self, subject: str, texts: Mapping[str, str], column: str) -> None:
        """Give entities the bits of their texts, which the inventory has."""
        of_texts, of_ids = self._text_bits.get(subject, {}), self._text_bits[column]
        for entity, text in texts.items():
            of_ids[entity] = of_ids.get(entity, 0) | of_texts.get(text, 0)


def _a_value(text: str | None) -> str | None:
    return None if text in NO_VALUES else text or None


def _has_any(wanted: int) -> Callable[[int], bool]:
    return lambda bits: bits & wanted != 0


def _has_all(wanted: int) -> Callable[[int], bool]:
    return lambda bits: bits & wanted == wanted


def _all_of(first: Callable[[int], bool], others: Sequence[Callable[[int], bool]]) -> Callable[[int], bool]:
    return (lambda bits: first(bits) and all(other(bits) for other in others)) if others else first


def _any_of(first: Callable[[int], bool], others: Sequence[Callable[[int], bool]]) -> Callable[[int], bool]:
    return (lambda bits: first(bits) or any(other(bits) for other in others)) if others else first


def necessary_tests(match: Match) -> tuple[Test, ...] | None:
    """Return tests such that at least one holds wherever the match holds; None if there are none."""
    if isinstance(match, Test):
        return (match,)
    if isinstance(match, Not):
        return None
    found = [necessary_tests(child) for child in match.matches]
    if isinstance(match, All):
        return min((each for each in found if each is not None), key=_breadth, default=None)
    return None if None in found else tuple(test for each in found for test in each or ())


def _breadth(tests: Sequence[Test]) -> int:
    """Return roughly how many rows pass one of some tests, to compare: there are many identities, and few products."""
    return sum(_BREADTH.get(test.subject, 1) if test.pattern is not None else _BREADTH_OF_ANY for test in tests)


def _is_alternatives(match: Match) -> bool:
    return isinstance(match, Test) or (isinstance(match, AnyOf) and all(map(_is_alternatives, match.matches)))


def _only(known: Mapping[str, _T], wanted: set[str]) -> dict[str, _T]:
    """Return the entries whose keys are wanted."""
    if len(known) < len(wanted):
        return {key: value for key, value in known.items() if key in wanted}
    return {key: known[key] for key in wanted if key in known}
