"""The law of evidence: poorer evidence never replaces richer evidence."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chargeback.ecosystems.confluent_cloud.usage import Totals, usage_table
from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.errors import SourcePartial, SourceUnavailable
from chargeback.model.inventory import Inventory, Resource
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, UsageRequest, load_stored, richer_of
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    FactTables,
)
from tests.support.damage import file_of, remove
from tests.support.facts import new_facts, replace_day
from tests.support.laws import examples
from tests.support.sources import DAY, RECALCULATE, Laboratory, Sources, line

ANY_DAY = date(2026, 1, 1)
Values = Mapping[tuple[str, str, str], int]
#: The response of the metrics (some of the values, or a kind of failure), the number of billed lines, whether
#: statements can be listed, and whether it is a recalculation.
Step = tuple[Values | str, int, bool, bool]

#: The complete measurements; every other response has a part of them.
WHOLE: Values = {
    ("bytes_in", "lkc-1", "sa-a"): 90,
    ("bytes_in", "lkc-1", "sa-b"): 10,
    ("bytes_out", "lkc-2", "sa-b"): 7,
    ("flink_cfu_minutes_by_statement", "lfcp-1", "job"): 3,
    ("flink_cfu_minutes_by_statement", "lfcp-1", "etl"): 1,
}
parts_of_whole = st.fixed_dictionaries({}, optional={key: st.integers(0, value) for key, value in WHOLE.items()})


def table(values: Values) -> pa.Table:
    """Return values as a usage table."""
    totals: dict[str, Totals] = {
        name: {key: Decimal(value) for key, value in each.items()} for name, each in nested(values).items()
    }
    return usage_table(ANY_DAY, totals)


def nested(values: Values) -> dict[str, dict[tuple[str, str], int]]:
    """Return measure → (resource, subject) → value."""
    found: dict[str, dict[tuple[str, str], int]] = {}
    for (measure, resource, subject), value in values.items():
        found.setdefault(measure, {})[resource, subject] = value
    return found


def values_of(usage: pa.Table) -> dict[tuple[str, str, str], int]:
    """Return a usage table as values."""
    rows = usage.to_pylist()
    return {(row["measure"], row["resource_id"], row["subject"]): int(row["value"]) for row in rows}


def group(values: Values, key: tuple[str, str, str]) -> dict[str, int]:
    """Return the stored values of the measure and resource of a key."""
    return {subject: value for (measure, resource, subject), value in values.items() if (measure, resource) == key[:2]}


def has_all(values: Mapping[str, int], of: Mapping[str, int]) -> bool:
    """Return whether no value is missing or smaller."""
    return all(values.get(key, -1) >= value for key, value in of.items())


@given(st.lists(parts_of_whole, max_size=6))
@settings(max_examples=examples(60))
def test_what_is_kept_is_never_less_than_it_was(answers: list[Values]) -> None:
    """For any responses, each measure of each resource only grows, always equals one response, and is complete once a
    response was."""
    known = table({})
    for number, answer in enumerate([*answers, WHOLE, *answers]):
        before, known = values_of(known), richer_of(known, table(answer))
        after = values_of(known)
        for key in before:
            assert has_all(group(after, key), group(before, key))
        for key in after:
            assert group(after, key) in [group(each, key) for each in (*answers, WHOLE)]
        for key in answer:
            if has_all(group(answer, key), group(before, key)):
                assert has_all(group(after, key), group(answer, key))
        if number >= len(answers):
            assert known.equals(table(WHOLE))


def test_what_is_the_same_but_for_noise_is_not_taken() -> None:
    """A difference in the last digits of a double is neither more nor less."""
    stored = table({("bytes_in", "lkc-1", "sa-a"): 10**12, ("bytes_in", "lkc-1", "sa-b"): 1})
    noisy = table({("bytes_in", "lkc-1", "sa-a"): 10**12 - 1, ("bytes_in", "lkc-1", "sa-b"): 1})
    assert richer_of(stored, noisy) is stored
    assert richer_of(noisy, stored) is noisy


AWAY = SourceUnavailable("HTTP 503", source="metrics")
PARTIAL = SourcePartial("the answer is incomplete: a store is away", source="metrics")
MORE: Values = {("bytes_in", "lkc-1", "sa-a"): 90, ("bytes_in", "lkc-1", "sa-b"): 10}
LESS: Values = {("bytes_in", "lkc-1", "sa-b"): 5}
CLUSTER = Inventory([Resource("lkc-1", "kafka_cluster")])


@pytest.fixture
def facts(tmp_path: Path) -> Iterator[FactTables]:
    """Yield fact tables with the usage of one day."""
    tables = new_facts(tmp_path / "facts")
    replace_day(tables, USAGE_TABLE, ANY_DAY, table(MORE))
    yield tables


def fetched(sources: Sources, facts: FactTables, wanted: Sequence[UsageRequest], *, workers: int = 1) -> list[DayUsage]:
    """Return the usage of these days."""
    with UsageFetcher(sources, CLUSTER, facts, workers=workers).fetching(wanted) as usages:
        return list(usages)


def later_days(count: int) -> list[UsageRequest]:
    """Return days without stored evidence."""
    return [UsageRequest(ANY_DAY + timedelta(days=number), use_stored=False) for number in range(1, count + 1)]


def test_stored_usage_that_is_enough_is_not_asked_for(facts: FactTables) -> None:
    """The source is queried only for days without stored usage."""
    sources = Sources(totals=nested(LESS))
    stored, new = fetched(sources, facts, [UsageRequest(ANY_DAY, use_stored=True), *later_days(1)])
    assert stored.table is not None
    assert (values_of(stored.table), stored.is_new, stored.is_fetched) == (MORE, False, False)
    assert new.table is not None
    assert (values_of(new.table), new.is_new, new.is_fetched) == (LESS, True, True)
    assert sources.asked == 1


def test_lost_usage_is_asked_for_again(facts: FactTables, caplog: pytest.LogCaptureFixture) -> None:
    """If the file is lost, the usage is fetched again without a comparison, which is logged."""
    remove(Path(file_of(facts, USAGE_TABLE, ANY_DAY).path))
    assert load_stored(facts, USAGE_TABLE, ANY_DAY) is None
    (usage,) = fetched(Sources(totals=nested(LESS)), facts, [UsageRequest(ANY_DAY, use_stored=True)])
    assert usage.table is not None
    assert (values_of(usage.table), usage.is_new, usage.stored, usage.poorer) == (LESS, True, None, ())
    assert "stored evidence is unreadable; fetching it again" in caplog.text


def test_less_than_is_stored_is_named_and_not_taken(facts: FactTables) -> None:
    """Measures that are smaller in the source are reported, unless they are to replace the stored ones."""
    sources = Sources(totals=nested(LESS))
    (careful,) = fetched(sources, facts, [UsageRequest(ANY_DAY, use_stored=False)])
    assert careful.table is not None
    assert (values_of(careful.table), careful.is_new, careful.poorer) == (MORE, False, ("bytes_in",))
    (obedient,) = fetched(sources, facts, [UsageRequest(ANY_DAY, use_stored=False, replace=True)])
    assert obedient.table is not None
    assert (values_of(obedient.table), obedient.is_new, obedient.poorer) == (LESS, True, ())


def test_less_of_what_nobody_is_known_to_have_used_is_compared_as_it_counts(facts: FactTables) -> None:
    """Measures are compared after the owners of the usage are resolved."""

    def everything_is_anothers(_: date, usage: pa.Table) -> pa.Table:
        position = usage.schema.get_field_index("measure")
        return usage.set_column(position, usage.schema.field("measure"), [["another"] * usage.num_rows])

    sources = Sources(totals=nested(LESS))
    fetcher = UsageFetcher(sources, CLUSTER, facts, workers=1, resolve=everything_is_anothers)
    with fetcher.fetching([UsageRequest(ANY_DAY, use_stored=False)]) as usages:
        assert next(usages).poorer == ("another",)


def test_a_source_that_is_away_is_asked_once(facts: FactTables) -> None:
    """After one failed query, all other days have the same error, and their stored usage."""
    sources = Sources(fault=AWAY)
    usages = fetched(sources, facts, [*later_days(5), UsageRequest(ANY_DAY, use_stored=False)])
    assert sources.asked == 1
    assert [(usage.table, usage.error) for usage in usages] == [(None, AWAY)] * 6
    assert values_of(usages[-1].stored) == MORE


def test_an_incomplete_answer_says_nothing_of_other_days(facts: FactTables) -> None:
    """After an incomplete response, the other days are still queried."""
    sources = Sources(fault=PARTIAL)
    assert [usage.error for usage in fetched(sources, facts, later_days(4))] == [PARTIAL] * 4
    assert sources.asked == 4


class Measuring(Sources):
    """Metrics whose value, and whose number of invalid samples, is the day of the month."""

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        self.asked += 1
        return MeasuredUsage(usage_table(day, {"bytes_in": {("lkc-1", "sa-a"): Decimal(day.day)}}), dropped=day.day)


def test_days_come_in_the_order_in_which_they_are_wanted(facts: FactTables, caplog: pytest.LogCaptureFixture) -> None:
    """Days are in the requested order for any number of threads; invalid samples are logged for each day."""
    wanted = later_days(20)
    usages = fetched(Measuring(), facts, wanted, workers=4)
    days = [usage.table["date"].to_pylist() for usage in usages if usage.table is not None]
    assert days == [[each.day] for each in wanted]
    assert f"{wanted[0].day}: 2 samples were dropped because they were NaN, infinite or negative" in caplog.text


def test_nobody_fetches_for_a_run_that_has_ended(facts: FactTables) -> None:
    """When the calculation ends, the remaining days are not queried."""
    sources = Measuring()
    with UsageFetcher(sources, CLUSTER, facts, workers=2).fetching(later_days(100)) as usages:
        next(usages)
    assert sources.asked <= 5


_BROKEN = {"away": SourceUnavailable("HTTP 503"), "partial": SourcePartial("the answer is incomplete: a store is away")}
_LINES = [
    line("100"),
    line("10", resource="lkc-2", product="KAFKA_NETWORK_READ"),
    line("1000", resource="lfcp-1", product="FLINK_NUM_CFUS", resource_type="flink_compute_pool"),
]
_TOPICS = {"topic_bytes_in": {("lkc-1", "orders"): 3, ("lkc-1", "payments"): 1}, "topic_bytes_out": {("lkc-2", "x"): 1}}
_TABLES = (BILLING_TABLE, USAGE_TABLE, MEMBERS_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE)
steps_of_sources = st.lists(
    st.tuples(
        st.one_of(parts_of_whole, st.sampled_from(sorted(_BROKEN))),
        st.integers(1, len(_LINES)),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def laboratory_in(folder: Path) -> Laboratory:
    """Return a tenant with two clusters and a compute pool whose statements have owners."""
    laboratory = Laboratory(folder)
    listed = laboratory.sources.listed
    laboratory.sources.listed = Inventory(
        [
            *listed.resources,
            Resource("lkc-2", "kafka_cluster"),
            Resource("lfcp-1", "flink_compute_pool"),
            Resource("s-1", "flink_statement", "job", "lfcp-1", "sa-a"),
            Resource("s-2", "flink_statement", "etl", "lfcp-1", "sa-b"),
        ],
        listed.identities,
    )
    laboratory.sources.topic_totals = _TOPICS
    return laboratory


def heal(laboratory: Laboratory) -> None:
    """Make the sources complete."""
    sources = laboratory.sources
    sources.lines[DAY], sources.totals, sources.fault, sources.unlisted = _LINES, nested(WHOLE), None, {}


@pytest.mark.extensive
@given(steps_of_sources)
@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_once_the_sources_are_whole_a_day_is_as_if_they_had_always_been(steps: list[Step]) -> None:
    """After any partial responses, late lines, failed listings and recalculations, complete sources give the result of
    a first calculation, and stored usage never becomes less. Only values that the metrics omitted silently need a
    recalculation."""
    with tempfile.TemporaryDirectory() as folder:
        with laboratory_in(Path(folder) / "first") as first:
            heal(first)
            first.run()
            expected = [first.stored(name) for name in _TABLES]
        with laboratory_in(Path(folder) / "tried") as tried:
            before: dict[tuple[str, str, str], int] = {}
            for answer, lines, is_listed, recalculates in steps:
                sources = tried.sources
                sources.lines[DAY] = _LINES[:lines]
                sources.fault = _BROKEN[answer] if isinstance(answer, str) else None
                sources.totals = nested(answer) if isinstance(answer, dict) else {}
                sources.unlisted = {} if is_listed else {"flink_statement": "HTTP 403"}
                tried.run(RECALCULATE if recalculates else None)
                after = values_of(tried.stored(USAGE_TABLE))
                assert all(has_all(group(after, key), group(before, key)) for key in before)
                before = after
            heal(tried)
            tried.run()
            if any(isinstance(answer, dict) for answer, *_ in steps):
                tried.run(RECALCULATE)
            assert [tried.stored(name) for name in _TABLES] == expected
            assert tried.state().incomplete == {}
