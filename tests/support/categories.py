"""Random cost categories, tags, names and bills, small enough that all features interact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st

from chargeback.model.dated import DatedValue, Period

FIRST_DAY: Final = date(2026, 3, 1)
#: The days of a random bill.
DAYS: Final = [FIRST_DAY + timedelta(days) for days in range(5)]
#: The days on which random entries begin or end: those of the bill, one before and one after.
CHANGES: Final = [FIRST_DAY + timedelta(days) for days in range(-1, 7)]
IDENTITIES: Final = ("sa-1", "sa-2", "u-3", "pool-a", "UNALLOCATED")
RESOURCES: Final = ("lkc-1", "lkc-2", "lsrc-1")
ENVIRONMENTS: Final = ("env-1", "env-2")
TOPICS: Final = ("pay.orders", "pay.refunds", "search.clicks")
PRODUCT_TYPES: Final = ("KAFKA_NETWORK_READ", "KAFKA_STORAGE", "SUPPORT_CLOUD")
PRODUCT_CATEGORIES: Final = ("KAFKA", "SUPPORT")
TAG_KEYS: Final = ("team", "cost")
VALUES: Final = ("orders", "payments", "platform", "retail", "search")
#: Percentages that sum to 100, including unusual ones.
SPLITS: Final = (("60", "40"), ("33.3", "33.3", "33.4"), ("99.999999999999", "0.000000000001"), ("50", "25", "25"))
METRICS: Final = ("bytes_in", "bytes_out")
_ENDS: Final = ("valid_from", "valid_to")


@dataclass(frozen=True)
class BillRow:
    """A row of a random bill; ``units`` are 10⁻¹² of the currency, of either sign."""

    day: date
    identity_id: str | None
    resource_id: str | None
    environment_id: str | None
    topic_name: str | None
    product_type: str | None
    product_category: str | None
    units: int

    @property
    def subject(self) -> dict[str, str | None]:
        """Return the columns that rules can use."""
        return {name: value for name, value in vars(self).items() if name not in {"day", "units"}}


@dataclass(frozen=True)
class SomeTags:
    """Tags in memory: (entity type, entity, key) → dated values."""

    values: Mapping[tuple[str, str, str], Sequence[DatedValue]]

    def holders(self, entity_type: str, key: str) -> Mapping[str, Sequence[DatedValue]]:
        return {entity: each for (kind, entity, tag), each in self.values.items() if (kind, tag) == (entity_type, key)}


@dataclass(frozen=True)
class SomeNames:
    """Display names in memory: (entity type, entity) → name."""

    values: Mapping[tuple[str, str], str]

    def names(self, entity_type: str) -> Mapping[str, str]:
        return {entity: name for (kind, entity), name in self.values.items() if kind == entity_type}


def subjects_table(rows: Sequence[Mapping[str, str | None]], columns: Sequence[str]) -> pa.Table:
    """Return the distinct subjects of rows, with only these columns."""
    distinct = list(dict.fromkeys(tuple(row[name] for name in columns) for row in rows))
    arrays = [pa.array([row[place] for row in distinct], pa.string()) for place in range(len(columns))]
    return pa.Table.from_arrays(arrays, names=list(columns))


def bill_rows() -> st.SearchStrategy[BillRow]:
    """Return a strategy for rows of a bill; topic, environment and resource may be missing."""
    return st.builds(
        BillRow,
        st.sampled_from(DAYS),
        st.sampled_from([*IDENTITIES, None]),
        st.sampled_from([*RESOURCES, None]),
        st.sampled_from([*ENVIRONMENTS, None]),
        st.sampled_from([*TOPICS, None]),
        st.sampled_from(PRODUCT_TYPES),
        st.sampled_from(PRODUCT_CATEGORIES),
        st.integers(-7, 7) | st.integers(-(10**26), 10**26),
    )


def bills(most: int = 12) -> st.SearchStrategy[list[BillRow]]:
    """Return a strategy for bills of at least one row."""
    return st.lists(bill_rows(), min_size=1, max_size=most)


@st.composite
def _dated_values(draw: st.DrawFn) -> list[DatedValue]:
    """Draw values of one tag that do not overlap."""
    values = st.sampled_from(["payments", "orders", "search", "web-shop", "nobody", "UNTAGGED"])
    if draw(st.booleans()):
        return [DatedValue(draw(values))]
    cuts = sorted(draw(st.sets(st.sampled_from(CHANGES), min_size=1, max_size=3)))
    bounds = [None, *cuts, None]
    spans = [Period(first, end) for first, end in pairwise(bounds)]
    return [DatedValue(draw(values), span) for span in spans if draw(st.booleans())]


def tags() -> st.SearchStrategy[SomeTags]:
    """Return a strategy for tags of identities and resources, some of them dated."""
    entities = [*(("identity", each) for each in IDENTITIES[:4]), *(("resource", each) for each in RESOURCES)]
    keys = st.tuples(st.sampled_from(entities), st.sampled_from(TAG_KEYS)).map(lambda each: (*each[0], each[1]))
    return st.dictionaries(keys, _dated_values(), min_size=4, max_size=10).map(SomeTags)


#: The cluster of each resource.
_CLUSTERS: Final = {("cluster", "lkc-1"): "lkc-1", ("cluster", "lkc-2"): "lkc-2", ("cluster", "lsrc-1"): "lkc-1"}


def names() -> st.SearchStrategy[SomeNames]:
    """Return a strategy for display names of some entities."""
    entities = [*(("identity", each) for each in IDENTITIES), *(("resource", each) for each in RESOURCES)]
    shown = st.sampled_from(["payments-prod", "orders-dev", "-prod", "Shared cluster", "nobody-dev"])
    named = st.dictionaries(st.sampled_from(entities), shown, min_size=3, max_size=7)
    return named.map(lambda each: SomeNames(each | _CLUSTERS))


_TEXTS: Final = {
    "identity": (IDENTITIES, ("sa-*", "?-3", "*"), ("sa-", "UN"), (r"^sa-\d$", r"(?P<team>[a-z]+)-", "[0-9]")),
    "resource": (RESOURCES, ("lkc-*", "*-1"), ("l",), ("lkc", r"^(?P<team>ls?)(r|k)c-")),
    "cluster": (("lkc-1", "lkc-2"), ("lkc-?", "*2"), ("lkc",), (r"^(?P<team>l)kc-\d$",)),
    "environment": (ENVIRONMENTS, ("env-?",), ("env",), ("1$",)),
    "topic": (TOPICS, ("pay.*", "*.clicks", "*.*s"), ("pay.",), (r"^(?P<team>\w+)\.(?P<cost>\w*)",)),
    "product_type": (PRODUCT_TYPES, ("SUPPORT*", "*STORAGE*"), ("KAFKA_",), ("READ|STORAGE",)),
    "product_category": (PRODUCT_CATEGORIES, ("K*",), ("SUP",), ("^KAFKA$",)),
    "display_name": (
        ("payments-prod", "Shared cluster"),
        ("*-prod", "S*"),
        ("pay",),
        ("^(?P<team>[a-z]*)-(prod|dev)$",),
    ),
    "tag": (("payments", "orders"), ("web-*",), ("pay", "no"), ("^(?P<team>[a-z]+)", "^(?P<cost>[a-z]*)-?shop")),
}


@st.composite
def _patterns(draw: st.DrawFn, subject: str) -> Any:
    exact, globs, prefixes, regexes = (st.sampled_from(each) for each in _TEXTS[subject])
    return draw(
        st.one_of(
            exact,
            st.lists(exact | globs, min_size=1, max_size=3),
            st.fixed_dictionaries({"glob": globs}),
            st.fixed_dictionaries({"prefix": prefixes}),
            st.fixed_dictionaries({"regex": regexes}),
            st.fixed_dictionaries({"regex": st.lists(regexes, min_size=1, max_size=2)}),
        )
    )


@st.composite
def _tests(draw: st.DrawFn) -> dict[str, Any]:
    subject = draw(st.sampled_from(sorted(_TEXTS)))
    if subject != "tag":
        return {subject: draw(_patterns(subject))}
    value = {"value": draw(_patterns("tag"))} if draw(st.booleans()) else {}
    return {"tag": {"key": draw(st.sampled_from(TAG_KEYS)), **value}}


def matches() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for matches of any shape, as documents."""
    return st.recursive(
        _tests(),
        lambda inner: st.one_of(
            st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)}),
            st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)}),
            st.fixed_dictionaries({"not": inner}),
        ),
        max_leaves=4,
    )


def _dates(draw: st.DrawFn) -> dict[str, str]:
    first, end = sorted(draw(st.tuples(st.sampled_from(CHANGES), st.sampled_from(CHANGES))))
    dates = {"valid_from": first.isoformat(), "valid_to": end.isoformat()}
    kept = draw(st.sampled_from([(), (), ("valid_from",), ("valid_to",), tuple(dates)]))
    return {name: dates[name] for name in kept} if first < end or len(kept) < 2 else {}


def _groups(match: dict[str, Any]) -> set[str]:
    """Return the groups that a template can use in a random match, found in the texts, which is enough for these
    matches."""
    match_without_not = {key: value for key, value in match.items() if key != "not"}
    inner = [each for key in ("all", "any") for each in match_without_not.get(key, [])]
    own = "" if inner else str(match_without_not)
    return {name for name in ("team", "cost") if f"(?P<{name}>" in own} | {
        name for each in inner for name in _groups(each)
    }


@st.composite
def _split(draw: st.DrawFn, known: Sequence[str]) -> dict[str, str]:
    percentages = draw(st.sampled_from([each for each in SPLITS if len(each) <= len(known)]))
    values = draw(st.permutations(known))
    return dict(zip(values, percentages, strict=False))


@st.composite
def _capturing(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a match with a regex whose group a template can use, alone or with other conditions."""
    subject = draw(st.sampled_from(["identity", "resource", "topic", "display_name", "display_name", "tag"]))
    regex = draw(st.sampled_from([each for each in _TEXTS[subject][3] if "(?P<" in each]))
    key = draw(st.sampled_from(TAG_KEYS))
    test = {"tag": {"key": key, "value": {"regex": regex}}} if subject == "tag" else {subject: {"regex": regex}}
    others = draw(st.lists(matches(), max_size=1))
    place = draw(st.integers(0, len(others)))
    return {draw(st.sampled_from(["any", "all"])): [*others[:place], test, *others[place:]]} if others else test


@st.composite
def _rules(draw: st.DrawFn, known: Sequence[str]) -> dict[str, Any]:
    kind = draw(st.sampled_from(["constant", "split", "tag", "template"]))
    match = draw(_capturing() if kind == "template" else matches())
    if kind == "split":
        assigned: dict[str, Any] = {"split": draw(_split(known))}
    elif kind == "tag":
        key = draw(st.sampled_from(TAG_KEYS))
        match = draw(st.sampled_from([match, {"tag": {"key": key}}, {"identity": "*"}]))
        assigned = {"assign": {"from_tag": key}}
    elif kind == "template":
        group = draw(st.sampled_from(sorted(_groups(match))))
        assigned = {"assign": draw(st.sampled_from([f"${{{group}}}", f"${{{group}}}", f"x-${{{group}}}"]))}
    else:
        assigned = {"assign": draw(st.sampled_from(known))}
    return {"match": match, **assigned, **_dates(draw)}


@st.composite
def _steps(draw: st.DrawFn, known: Sequence[str]) -> list[dict[str, Any]]:
    """Draw steps without a cycle: every value is reallocated only to later ones of a random order."""
    order = draw(st.permutations(known))
    steps = []
    for place, source in enumerate(order[:-1]):
        by = draw(st.sampled_from(["none", "proportional", "even", "usage", "fixed"]))
        later = order[place + 1 :]
        fees = {"monthly": draw(_fees(later))} if draw(st.integers(0, 2)) == 0 else {}
        if by == "none":
            steps += [{"from": source, **fees}] if fees else []
            continue
        if by == "fixed" and len(later) > 1:
            steps.append({"from": source, "by": {"fixed": draw(_split(later))}, **fees})
            continue
        to: Any = draw(st.just("*") | st.lists(st.sampled_from(later), min_size=1, max_size=3, unique=True))
        how = f"usage({draw(st.sampled_from(METRICS))})" if by == "usage" else by.replace("fixed", "even")
        steps.append({"from": source, "to": to, "by": how, **fees})
    shuffled: list[dict[str, Any]] = draw(st.permutations(steps))
    return shuffled


def _fees(values: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for amounts per month, small and large compared with the costs."""
    amounts = st.sampled_from(["0.000000000031", "0.01", "31", "12.345678901234", "9999999"])
    return st.dictionaries(st.sampled_from(values), dated(amounts), min_size=1, max_size=3)


@st.composite
def documents(draw: st.DrawFn, rules: int = 5) -> dict[str, Any]:
    """Draw valid documents of a category: with and without register, dates, splits, tags, templates and steps."""
    document: dict[str, Any] = {"default": draw(st.sampled_from(["UNASSIGNED", "nobody"]))}
    known: list[str] = list(VALUES)
    if draw(st.booleans()):
        known = sorted(draw(st.sets(st.sampled_from(VALUES), min_size=3)))
        document["values"] = {value: draw(_entries(known[:place])) for place, value in enumerate(known)}
    document["rules"] = draw(st.lists(_rules(known), min_size=draw(st.integers(0, 2)), max_size=rules))
    if draw(st.booleans()):
        document["share"] = draw(_steps(known))
    return document


@st.composite
def _entries(draw: st.DrawFn, parents: Sequence[str]) -> dict[str, Any]:
    entry: dict[str, Any] = _dates(draw)
    if len(parents) > 0 and draw(st.booleans()):
        entry["parent"] = draw(dated(st.sampled_from(parents)))
    return entry


@st.composite
def dated(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str | list[dict[str, str]]:
    """Draw a text that always applies, or several that apply on some days each."""
    if draw(st.booleans()):
        return draw(values)
    cuts = [None, *sorted(draw(st.sets(st.sampled_from(CHANGES), max_size=2))), None]
    periods = [
        {"value": draw(values), **{name: day.isoformat() for name, day in zip(_ENDS, each, strict=True) if day}}
        for each in pairwise(cuts)
    ]
    return draw(st.lists(st.sampled_from(periods), min_size=1, unique_by=str))


def usages() -> st.SearchStrategy[dict[str, dict[str, int]]]:
    """Return a strategy for usage by metric and value."""
    of_values = st.dictionaries(st.sampled_from(VALUES), st.integers(0, 10**15), max_size=4)
    return st.dictionaries(st.sampled_from(METRICS), of_values)
