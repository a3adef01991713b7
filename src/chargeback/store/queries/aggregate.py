"""Sums of the rows of a dataset by time bucket and columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final
from zoneinfo import ZoneInfo

from chargeback.model.currency import Rates
from chargeback.model.money import render
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.keys import ByCategory, ByTime, Key, TimeBucket, bucket, keys_of
from chargeback.store.queries.lookups import CATEGORY_PREFIX
from chargeback.store.queries.partials import DISTINCT_ROWS, REALLOCATED, ROW_COUNT
from chargeback.store.queries.question import SumRelation, Sums
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import decimal_text, exact_texts, json_text

MAX_BUCKETS: Final = 10_000

#: The sums that an amount is made of, by its name: the first less the others.
_Amounts = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Grouping:
    """By what rows are summed: columns (or ``tag:<key>``) and a unit of time in a zone's calendar; with ``rates`` in
    another currency."""

    by: tuple[str, ...]
    unit: str
    zone: ZoneInfo
    rates: Rates | None = None


@dataclass(frozen=True)
class Aggregate:
    """The sums, as the API shows them, and whether older buckets were left out.

    ``rendered`` are the buckets as JSON, ``totals`` the amounts of everything by their names, and ``total_rows``.
    """

    rendered: list[str]
    totals: dict[str, Any]
    truncated: bool = False

    @property
    def buckets(self) -> list[dict[str, Any]]:
        """The buckets as objects."""
        return [json.loads(text) for text in self.rendered]

    @classmethod
    def of_nothing(cls, amounts: Mapping[str, object]) -> Aggregate:
        """Return the sums of no rows."""
        return cls([], dict.fromkeys(amounts, "0.00") | {"total_rows": 0})


def aggregate(
    sums: Callable[[Sums], SumRelation], dataset: Dataset, selection: Selection, grouping: Grouping
) -> Aggregate:
    """Return the sums of the selected rows of a dataset by the keys of the grouping; the totals cover everything,
    buckets are at most :data:`MAX_BUCKETS`. ``sums`` runs the queries.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        UnknownCategory: the tenant has no such cost category.
        ValueError: the dataset cannot be filtered or grouped by these columns.
    """
    amounts = shown_amounts(dataset, grouping)
    summed = tuple(dict.fromkeys([*dataset.shown_sums, *(name for names in amounts.values() for name in names)]))
    by = (ByTime(grouping.unit, grouping.zone), *keys_of(dataset, grouping.by))
    question = Sums(dataset, selection, by, (*summed, ROW_COUNT, DISTINCT_ROWS), grouping.rates)
    asked = sums(question)
    if asked.days is None:
        return Aggregate.of_nothing(amounts)
    when = bucket(grouping.unit, grouping.zone, asked.days)
    found = asked.newest(MAX_BUCKETS)
    whole = found if found.is_whole else sums(replace(question, by=_categories(by)))
    texts = _texts(found, when, grouping.by, amounts) if found.are_few else "NULL"
    shown = ["count(*)", f"sum({DISTINCT_ROWS})::BIGINT", texts, *(whole.total(*each) for each in amounts.values())]
    relation = _with_texts(found, amounts) if found.are_few else "sums"
    ((buckets, total_rows, rendered, *totals),) = whole.rows(f"SELECT {', '.join(shown)} FROM {relation}")
    if not total_rows:
        return Aggregate.of_nothing(amounts)
    truncated = buckets > MAX_BUCKETS or not found.is_whole
    if not found.are_few:
        newest = _newest_buckets(found, when) if truncated else "sums"
        ((rendered,),) = found.rows(
            f"SELECT {_texts(found, when, grouping.by, amounts)} FROM {_with_texts(found, amounts, newest)}"
        )
    return Aggregate(
        rendered,
        {name: render(total) for name, total in zip(amounts, totals, strict=True)} | {"total_rows": total_rows},
        truncated,
    )


def _categories(by: Sequence[Key]) -> tuple[Key, ...]:
    """Return the cost categories of some keys: only with these there is what values reallocate."""
    return tuple(key for key in by if isinstance(key, ByCategory))


def shown_amounts(dataset: Dataset, grouping: Grouping) -> _Amounts:
    """Return what is shown of the sums, by name: the first of some sums less the others; by category also what its
    values were assigned, and what they reallocated."""
    if any(name.startswith(CATEGORY_PREFIX) for name in grouping.by):
        direct, *shared = REALLOCATED
        return {**dataset.amounts, "direct_amount": (direct,), **{name: (name,) for name in shared}}
    return dataset.amounts


def _newest_buckets(found: SumRelation, when: TimeBucket) -> str:
    """Return the rows (SQL) that remain when the oldest time buckets are left out whole; of a single time bucket that
    is too large by itself, those with the largest amounts."""
    times = found.rows(f"SELECT {when.order}, count(*) FROM sums GROUP BY ALL ORDER BY 1 DESC")
    room, oldest = MAX_BUCKETS, None
    for time, buckets in times:
        if buckets > room:
            break
        room, oldest = room - buckets, time
    if oldest is None:
        newest = f"{when.order} = {_time(times[0][0])}"
        return f"(SELECT * FROM sums WHERE {newest} ORDER BY abs(total) DESC, * LIMIT {MAX_BUCKETS})"
    return f"(SELECT * FROM sums WHERE {when.order} >= {_time(oldest)})"


def _time(value: object) -> str:
    return f"DATE '{value}'" if isinstance(value, date) else str(value)


def _with_texts(found: SumRelation, amounts: _Amounts, relation: str = "sums") -> str:
    """Return a relation (SQL) with the ``texts`` of its amounts, where these have further digits."""
    if not found.is_fine:
        return relation
    values = [found.amount(*each) for each in amounts.values()]
    return f"(SELECT *, {exact_texts(values, found.question.places)} AS texts FROM {relation})"


def _texts(found: SumRelation, when: TimeBucket, by: Sequence[str], amounts: _Amounts) -> str:
    """Return the list of the buckets as they are shown, as SQL. The database writes them: there may be thousands, and
    making objects of them takes longer than summing."""
    if found.is_fine:
        texts = [f"texts[{place}]" for place in range(1, len(amounts) + 1)]
    else:
        texts = [decimal_text(found.amount(*each), found.question.places) for each in amounts.values()]
    dimensions = ", ',', ".join(
        f"""'"{name}":', coalesce({json_text(f"d{number}")}, 'null')""" for number, name in enumerate(by)
    )
    shown = {"time_bucket": when.label, **dict(zip(amounts, texts, strict=True))}
    members = ", ".join(f"""'"{name}":"', {sql}, '",'""" for name, sql in shown.items())
    order = ", ".join(f"d{number} NULLS FIRST" for number in range(len(by)))
    return f"""list(concat('{{"dimensions":{{', {dimensions}, '}},', {members}, '"row_count":', row_count, '}}')
                    ORDER BY {when.order}, {order})"""
