"""Sums by cost category: each row belongs to a value, is split over several, or is reallocated from one to others.

Rows with a single value are summed like everything else, from partial aggregates if these suffice. Rows that a rule
splits are divided in whole units of 10⁻¹² by largest remainder, each distinct amount of a group once: so the parts have
the sum of the rows, and equal the parts that lists show. The reallocated cost of a value is its sums of a day times the
weights of that day, which are exact numbers of 10⁻²⁴: nothing is rounded, so the parts have the sum of the rows in
every group and filter.

The final sums of one category by time, the most frequent query, are kept in memory for each file.

The result takes the place of partial aggregates: it has the columns that the query names, ``category_<place>`` and
``rule_<place>`` for each category, and the sums. A product of a sum (up to 38 digits) and a weight (twelve) does not
fit 128 bits, so it is kept in two columns, each of which is checked for overflow: whole units, and below these a number
of 10⁻²⁴. Sums are therefore as large as any other: up to 26 digits before the decimal point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import pyarrow as pa

from chargeback.categories.handover import WHOLE, Receiver, composed, day_steps
from chargeback.categories.resolve import resolve, used_columns
from chargeback.categories.weights import Outcome, parts
from chargeback.errors import StorageError
from chargeback.model.days import DayRange
from chargeback.model.money import to_units
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.partial_files import PartialFiles
from chargeback.store.queries.assignments import Assignments, Joined, UsedCategory, join_assigned
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.measurements import Measured
from chargeback.store.queries.partials import (
    COUNTS,
    DISTINCT_ROWS,
    REALLOCATED,
    ROW_COUNT,
    TIME_COLUMNS,
    SumSource,
    covering,
    sum_sources,
    sums_of,
    with_first,
)
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.sql_format import FINE, fine_rest, fine_wholes, named, one_of
from chargeback.store.queries.visible_sums import VisibleSums

# More than there are receivers: of equal remainders the first receiver is favoured.
_MORE_THAN_RECEIVERS: Final = 1_000_000


def divided(source: str, receivers: str, weights: str) -> str:
    """Return the query that divides the ``units`` of each row of ``source`` by largest remainder, exactly as
    :func:`~chargeback.allocation.split.split_exactly` does; with a row for each receiver, and the further columns
    ``receiver`` and ``share``.

    ``receivers`` is the column with the list of receivers, ascending, and ``weights`` (HUGEINT[]) has their positive
    weights.
    """
    return f"""
        SELECT * EXCLUDE (total_weight, whole, rest, rounded_down, ranks, left_over, lowest),
               unnest({receivers}) AS receiver,
               unnest(list_transform({weights}, lambda weight, place:
                   CASE WHEN units < 0 THEN -1 ELSE 1 END * (whole * weight + rounded_down[place]
                   + CASE WHEN left_over > 0 AND ranks[place] >= lowest THEN 1 ELSE 0 END))) AS share
        FROM (SELECT *, list_reverse_sort(ranks)[left_over] AS lowest
        FROM (SELECT *,
                     list_transform({weights}, lambda weight, place: {_MORE_THAN_RECEIVERS}
                         * (rest * weight - rounded_down[place] * total_weight) - place) AS ranks,
                     (rest - list_sum(rounded_down))::BIGINT AS left_over
        FROM (SELECT *, list_transform({weights}, lambda weight: (rest * weight) // total_weight) AS rounded_down
        FROM (SELECT *, abs(units) // total_weight AS whole, abs(units) % total_weight AS rest
        FROM (SELECT *, list_sum({weights})::HUGEINT AS total_weight FROM {source})))))"""


def split_pieces(before: str, value: str, outcome: str, outcomes: str) -> str:
    """Return the query that divides the pieces of ``before`` among the values of their outcomes.

    ``value`` and ``outcome`` are columns, ``outcomes`` is a table, see
    :func:`~chargeback.store.queries.assignments.outcome_table`.
    """
    pieces = f"(SELECT * FROM {before} JOIN {_weights(outcomes)} AS of_outcome ON of_outcome.outcome = {outcome})"
    return f"""
        SELECT * EXCLUDE (receivers, weights, outcome, receiver, share)
               REPLACE (receiver AS {value}, share AS units, is_first AND receiver = receivers[1] AS is_first)
        FROM ({divided(pieces, "receivers", "weights")})"""


def split_alike(before: str, value: str, outcome: str, outcomes: str, kept: Sequence[str]) -> dict[str, str]:
    """Return the same in steps, by their names: the last one has the sums (``units``) of the parts of pieces that are
    the same in the ``kept`` columns and in their remainder by the sum of the weights, and how many they are
    (``alike``)."""
    weights = _weights(outcomes)
    return {
        "wholes": f"""
            SELECT {", ".join(kept)}, units % total AS remainder, sum(units // total * alike) AS wholes,
                   sum(alike)::BIGINT AS alike
            FROM {before} JOIN (SELECT outcome, list_sum(weights)::HUGEINT AS total FROM {weights}) AS of_outcome
                 ON of_outcome.outcome = {outcome}
            GROUP BY ALL""",
        "remainders": divided(
            f"""(SELECT outcome, remainder, remainder AS units, receivers, weights
                 FROM (SELECT DISTINCT {outcome} AS outcome, remainder FROM wholes) JOIN {weights} USING (outcome))""",
            "receivers",
            "weights",
        ),
        "parts": f"""
            SELECT wholes.* REPLACE (receiver AS {value}, is_first AND receiver = receivers[1] AS is_first),
                   alike * share + wholes.wholes * weights[list_position(receivers, receiver)] AS units
            FROM wholes JOIN remainders
                 ON remainders.outcome = {outcome} AND remainders.remainder = wholes.remainder""",
    }


def _weights(outcomes: str) -> str:
    """Return the receivers and weights of all outcomes, also of those with one value."""
    return f"""(SELECT outcome, coalesce(receivers, [value]) AS receivers,
                       coalesce(weights, [1])::HUGEINT[] AS weights FROM {outcomes})"""


def parts_of_whole(shares: str) -> str:
    """Return the receivers of the cost of rows, by day and source: the ``receiver``, the part that it has in the end
    (``share``) and the part that it ``passed`` on.

    ``shares`` is a table of (day, source, receiver, weight, passed), see
    :class:`~chargeback.categories.handover.Receiver`; units are parts of the whole cost of a row.
    """
    return f"""
        SELECT day AS date, source, {WHOLE}::HUGEINT AS units, receiver, weight::HUGEINT AS share,
               passed::HUGEINT AS passed
        FROM {shares}"""


def shared_parts(before: str, value: str, shares: str) -> str:
    """Return the same of the pieces of ``before``, for all ``units`` that earlier categories left of the whole: the
    parts of the receivers sum to them."""
    found = f"""(SELECT * FROM (SELECT DISTINCT date, {value} AS source, units FROM {before}) JOIN (
                     SELECT day AS date, source, list(receiver ORDER BY receiver) AS receivers,
                            list(weight::HUGEINT ORDER BY receiver) AS weights,
                            list(passed::HUGEINT ORDER BY receiver) AS passed
                     FROM {shares} GROUP BY ALL) USING (date, source))"""
    return f"""
        SELECT date, source, units, receiver, share,
               units * passed[list_position(receivers, receiver)] // {WHOLE} AS passed
        FROM ({divided(found, "receivers", "weights")})"""


def reallocated(before: str, value: str, parts: str) -> str:
    """Return the query that reallocates the pieces of ``before`` by the result of :func:`shared_parts`: what a source
    has and does not keep ``went`` to others, whose pieces have what ``came`` to them. The total of a piece is its
    ``units`` of the row."""
    kept = f"""(SELECT date, source, units, sum(CASE WHEN receiver = source THEN share ELSE 0 END)::HUGEINT AS kept
                FROM {parts} GROUP BY ALL)"""
    return f"""
        SELECT pieces.* REPLACE (
                   coalesce(kept, pieces.units) AS units,
                   went + pieces.units - coalesce(kept, pieces.units) AS went)
        FROM {before} AS pieces LEFT JOIN {kept} AS found
            ON found.date = pieces.date AND found.source = {value} AND found.units = pieces.units
        UNION ALL BY NAME
        SELECT pieces.* REPLACE (receiver AS {value}, share AS units, share + passed AS came, passed AS went,
                                 FALSE AS is_direct)
        FROM {before} AS pieces JOIN {parts} AS found
            ON found.date = pieces.date AND found.source = {value} AND found.units = pieces.units
               AND found.receiver != found.source"""


_EVERYTHING: Final = Condition()
_NOTHING: Final = one_of("0")
_SHARES: Final = pa.schema(
    [
        ("day", pa.date32()),
        ("source", pa.string()),
        ("receiver", pa.string()),
        ("weight", pa.int64()),
        ("passed", pa.int64()),
    ]
)


@dataclass(frozen=True)
class CategoryQuery:
    """The rows of a scan with the categories that a query uses: ``wanted`` is a condition on their columns.

    ``visible_sums`` are the kept sums of a scope, if the filter of the scan is exactly that scope's.
    """

    cursor: Cursor
    partials: PartialFiles | None
    dataset: Dataset
    scan: Scan
    used: tuple[UsedCategory, ...]
    wanted: Condition = _EVERYTHING
    visible_sums: VisibleSums | None = None

    @property
    def sharing(self) -> list[UsedCategory]:
        """The categories whose values reallocate their cost."""
        return [each for each in self.used if each.shares]

    @property
    def amounts(self) -> list[str]:
        """The names of the dataset's sums that are amounts."""
        return [name for name in self.dataset.sums if name not in COUNTS]


def units_of(amount: str) -> str:
    """Return an amount in units of 10⁻¹², as SQL."""
    return f"{digits_of(amount)}::HUGEINT"


def digits_of(amount: str) -> str:
    """Return the same as a text: Python reads it five times as fast as a HUGEINT."""
    return f"replace({amount}::VARCHAR, '.', '')"


@dataclass(frozen=True)
class _Sums:
    """How a query is summed: into which ``table``, by which columns of rows (``keys``, without those of categories),
    and how rows are joined with each category."""

    table: str
    keys: Sequence[str]
    joined: Sequence[Joined]

    @property
    def joins(self) -> str:
        """The joins that add the columns of the categories."""
        return " ".join(each.join for each in self.joined)


def categorised(query: CategoryQuery, columns: Sequence[str]) -> SumSource:
    """Return the sums of a query by some columns of its dataset and by its categories.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    found = _kept_sums(query, columns) or _summed(query, columns)
    if not query.wanted.clauses or not (query.sharing or any(each.assignments.splits for each in query.used)):
        return replace(found, condition=found.condition & query.wanted)
    # Of the parts of the same rows, any that is wanted may be the first.
    rows = ", ".join([*_keys(query, columns), *(each.outcome for each in query.used)])
    once = f"CASE WHEN row_number() OVER (PARTITION BY {rows}) = 1 THEN {ROW_COUNT} ELSE 0 END"
    relation = f"(SELECT * REPLACE ({once} AS {DISTINCT_ROWS}) FROM {found.relation} WHERE {query.wanted.sql})"
    return replace(found, relation=relation, condition=found.condition & Condition(parameters=query.wanted.parameters))


def _keys(query: CategoryQuery, columns: Sequence[str]) -> list[str]:
    """Return the columns of rows by which a query is summed, and the rules that decided."""
    others = (name for name in columns if name not in TIME_COLUMNS)
    return [*TIME_COLUMNS, *others, *(each.rule for each in query.used)]


def _kept_sums(query: CategoryQuery, columns: Sequence[str]) -> SumSource | None:
    """Return the sums that are kept in memory of each file, of one category by time; within a scope, of its visible
    rows. None if more is asked, or if they are too large to be kept."""
    if len(query.used) > 1 or not set(columns) <= set(TIME_COLUMNS):
        return None
    (used,), filtered = query.used, query.scan.filter
    kept = query.visible_sums if filtered.clauses else used.assignments.sums
    if kept is None:
        return None

    def _make(files: Sequence[DayFile]) -> pa.Table:
        scan = replace(query.scan.spanning(files), filter=filtered)
        found = _summed(replace(query, scan=scan, wanted=_EVERYTHING), ())
        # Small numbers are divided faster, whenever amounts are shown.
        carried = {name: f"{name} + {one_of(fine_wholes(f'{name}{FINE}'))}" for name in found.fine}
        rest = {f"{name}{FINE}": f"{fine_rest(f'{name}{FINE}')}::BIGINT" for name in found.fine}
        sums = f"* REPLACE ({named(carried | rest)})" if found.fine else "*"
        return query.cursor.table(f"SELECT {sums} FROM {found.relation} ORDER BY date", {})

    table = kept.of(query.dataset, (used.value,), query.scan.files, _make)
    if table is None:
        return None
    relation = query.cursor.register(query.cursor.new_name("categorised"), table)
    keys = {*_keys(query, ()), used.value, used.outcome}
    sums = sums_of(name for name in table.column_names if name not in keys)
    values, times = (len(table[name].unique()) for name in (used.value, "timestamp"))
    in_window = replace(query.scan, filter=_EVERYTHING).row_condition()
    return SumSource(relation, in_window, sums, are_partial=True, rows=values * times)


def _summed(query: CategoryQuery, columns: Sequence[str]) -> SumSource:
    """Return the sums of a query, also by the outcomes of its categories."""
    joined = [join_assigned(query.cursor, query.partials, query.scan, each) for each in query.used]
    into = _Sums(query.cursor.new_name("categorised"), _keys(query, columns), joined)
    splitting = [(each, its) for each, its in zip(query.used, joined, strict=True) if its.splits]
    _sum_whole_rows(query, into, columns, [each for each, _ in splitting])
    if splitting and query.scan.files:
        _sum_split_rows(query, into, splitting)
    missing = " OR ".join(f"{each.value} IS NULL" for each in query.used)
    ((rows, lost),) = query.cursor.rows(f"SELECT count(*), count(*) FILTER ({missing}) FROM {into.table}")
    if lost:
        raise StorageError("some rows have no value of a cost category: their files changed; ask again")
    sums = [*query.dataset.sums, ROW_COUNT, DISTINCT_ROWS]
    relation = f"(SELECT *, total AS direct, {_NOTHING} AS shared_in, {_NOTHING} AS shared_out FROM {into.table})"
    if query.sharing:
        shared = _share(query, into)
        fine = [f"{name}{FINE}" for name in (*query.amounts, "shared_in", "shared_out")]
        nothing = dict.fromkeys(fine, "0::HUGEINT")
        relation = f"""(
            SELECT * EXCLUDE (is_shared), {named(nothing)} FROM {relation} WHERE NOT is_shared
            UNION ALL BY NAME SELECT * FROM {shared})"""
        sums += fine
    return SumSource(relation, Condition(), sums_of([*sums, *REALLOCATED]), are_partial=True, rows=rows)


def _sum_whole_rows(
    query: CategoryQuery, into: _Sums, columns: Collection[str], splitting: Sequence[UsedCategory]
) -> None:
    """Make the table, of what belongs to one value of each category."""
    not_split = Condition(tuple(f"{each.is_split} IS NOT TRUE" for each in splitting))
    # What is reallocated may get to a value that is wanted.
    wanted = " OR ".join(filter(None, [query.wanted.sql, _is_shared(query)]))
    is_shared = [f"({_is_shared(query)}) AS is_shared"] if query.sharing else []
    keys = [*into.keys, *_divided_columns(query), *is_shared]

    def _make(source: SumSource) -> None:
        condition = (
            source.condition & Condition((f"({wanted})",), query.wanted.parameters | _sources(query)) & not_split
        )
        sums = {**source.sums, DISTINCT_ROWS: source.sums[ROW_COUNT]}
        query.cursor.run(
            f"""CREATE OR REPLACE TEMP TABLE {into.table} AS SELECT {", ".join(keys)}, {named(sums)}
                FROM {source.relation} AS stored {into.joins} WHERE {condition.sql} GROUP BY ALL""",
            condition.parameters,
        )

    reads = {*columns}.union(*(each.assignments.columns for each in query.used))
    with_first(sum_sources(query.cursor, query.partials, query.dataset, query.scan, reads), _make)


def _is_shared(query: CategoryQuery) -> str:
    """Return whether a row belongs to a value that reallocates its cost, as SQL; empty where none does."""
    return " OR ".join(f"{each.value} IN (SELECT unnest(${_sources_of(each)}::VARCHAR[]))" for each in query.sharing)


def _sources(query: CategoryQuery) -> dict[str, object]:
    return {
        _sources_of(each): sorted({source for of_day in each.shares.values() for source in of_day})
        for each in query.sharing
    }


def _sources_of(used: UsedCategory) -> str:
    return f"sources_{used.place}"


def _sum_split_rows(query: CategoryQuery, into: _Sums, splitting: Sequence[tuple[UsedCategory, Joined]]) -> None:
    """Insert the parts of what is split. Where cost is reallocated, that comes next, and decides what is wanted."""
    wanted = _EVERYTHING if query.sharing else query.wanted
    sql, condition = _kept_parts(query, into) or _parts_of_rows(query, query.scan, into.keys, into.joins, splitting)
    query.cursor.run(
        f"""INSERT INTO {into.table} BY NAME
            SELECT * {", TRUE AS is_shared" if query.sharing else ""} FROM ({sql}) WHERE {wanted.sql}""",
        condition.parameters | wanted.parameters,
    )


def _parts_of_rows(
    query: CategoryQuery,
    scan: Scan,
    keys: Sequence[str],
    joins: str,
    splitting: Sequence[tuple[UsedCategory, Joined]],
) -> tuple[str, Condition]:
    """Return the sums of the parts of what is split, as SQL with the parameters of a condition.

    Amounts repeat, and so does what is left of them by the sum of the weights, which alone needs a largest remainder:
    each is divided once.
    """
    conditions, (last, its) = query.dataset.conditions, splitting[-1]
    flags = {f"is_{name}": f"({condition})" for name, condition in conditions.items()}
    condition, found = scan.condition(), [*keys, *_divided_columns(query)]
    stages = {
        "rows": f"""
            SELECT {", ".join(found)}, {named({**flags, "part": query.dataset.amount, "alike": "count(*)"})},
                   TRUE AS is_first
            FROM {SOURCE} AS stored {joins}
            WHERE {condition.sql} AND ({" OR ".join(each.is_split for each, _ in splitting)}) GROUP BY ALL""",
        "amounts": f"SELECT * EXCLUDE (part), {units_of('part')} AS units FROM rows",
    }
    for each, joined in splitting[:-1]:
        stages[f"split_{each.place}"] = split_pieces(next(reversed(stages)), each.value, each.outcome, joined.outcomes)
    kept = [*found, *flags, "is_first"]
    stages |= split_alike(next(reversed(stages)), last.value, last.outcome, its.outcomes, kept)
    made = ", ".join(f"{name} AS {'MATERIALIZED' if name == 'wholes' else ''} ({sql})" for name, sql in stages.items())
    sums = {name: _sum_of_parts(name, conditions) for name in (*query.dataset.sums, ROW_COUNT)}
    sums[DISTINCT_ROWS] = "sum(CASE WHEN is_first THEN alike ELSE 0 END)::BIGINT"
    sql = f"WITH {made} SELECT {', '.join(found)}, {named(sums)} FROM {next(reversed(stages))} GROUP BY ALL"
    return sql, Condition(parameters=condition.parameters)


def _divided_columns(query: CategoryQuery) -> list[str]:
    return [*(each.value for each in query.used), *(each.outcome for each in query.used)]


def _kept_parts(query: CategoryQuery, into: _Sums) -> tuple[str, Condition] | None:
    """Return the same of the sums that are kept of each file, by the columns of its partial aggregates; None if these
    have not all columns, with several categories, or if the sums are too large to be kept."""
    if len(query.used) > 1 or query.partials is None:
        return None
    (used,) = query.used
    reads = set(into.keys) - {used.rule}
    columns = covering(query.dataset, query.scan.filter.reads | reads)
    if columns is None:
        return None
    keys = [*TIME_COLUMNS, *columns, used.rule]

    def _make(files: Sequence[DayFile]) -> pa.Table:
        days = DayRange.spanning([file.day for file in files if file.day is not None])
        scan = Scan(days.window, tuple(files))
        sql, condition = _parts_of_rows(query, scan, keys, into.joins, [(used, into.joined[0])])
        return query.cursor.table(f"SELECT * FROM ({sql}) ORDER BY date", condition.parameters)

    table = used.assignments.sums.of(query.dataset, columns, query.scan.files, _make)
    if table is None:
        return None
    relation = query.cursor.register(query.cursor.new_name("parts_kept"), table)
    condition, found = query.scan.row_condition(), ", ".join([*into.keys, *_divided_columns(query)])
    sums = sums_of([*query.dataset.sums, ROW_COUNT, DISTINCT_ROWS])
    return f"SELECT {found}, {named(sums)} FROM {relation} WHERE {condition.sql} GROUP BY ALL", condition


def _sum_of_parts(name: str, conditions: Mapping[str, str]) -> str:
    """Return a sum of parts that each stand for several rows, as SQL."""
    value = "alike" if name in COUNTS else "units"
    if name in conditions:
        value = f"CASE WHEN is_{name} THEN {value} ELSE 0 END"
    return f"sum({value})::BIGINT" if name in COUNTS else one_of(f"sum({value})")


def _share(query: CategoryQuery, into: _Sums) -> str:
    """Make the table of what values reallocate, and what they keep of the same rows; return its name.

    A piece is the sum of some rows and a number of parts of :data:`WHOLE` for each flow. The second category divides
    the parts that the first one made, by largest remainder: so those of the first are what they are without it.
    """
    halves: dict[str, str] = {}
    for name in query.amounts:
        units = units_of(name)
        halves |= {f"{name}_high": f"{units} // {WHOLE}", f"{name}_low": f"{units} % {WHOLE}"}
    stages = {
        "pieces": f"""
            SELECT *, {named(halves)}, {WHOLE}::HUGEINT AS units, 0::HUGEINT AS came, 0::HUGEINT AS went,
                   TRUE AS is_direct
            FROM {into.table} WHERE is_shared"""
    }
    for number, each in enumerate(query.sharing):
        before, parts = next(reversed(stages)), f"parts_{each.place}"
        shares = query.cursor.register(query.cursor.new_name("shares"), _shares_table(each.shares))
        stages[parts] = parts_of_whole(shares) if number == 0 else shared_parts(before, each.value, shares)
        stages[f"reallocated_{each.place}"] = reallocated(before, each.value, parts)
    made = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in stages.items())
    # A value may have several parts of the same rows, which count once.
    sums = {name: f"max({name})" for name in (*query.dataset.sums, ROW_COUNT) if name in COUNTS}
    sums["direct"] = f"{one_of('0')} + sum(CASE WHEN is_direct THEN total ELSE 0 END)"
    for name in query.amounts:
        sums |= _products(name, name, "units")
    sums |= dict(_products("shared_in", "total", "came")) | dict(_products("shared_out", "total", "went"))
    sums[DISTINCT_ROWS] = f"sum(CASE WHEN is_direct THEN {DISTINCT_ROWS} ELSE 0 END)::BIGINT"
    table = query.cursor.new_name("reallocated")
    query.cursor.run(
        f"""CREATE TEMP TABLE {table} AS WITH {made}
            SELECT {", ".join([*into.keys, *_divided_columns(query)])}, {named(sums)}
            FROM {next(reversed(stages))} WHERE {query.wanted.sql} GROUP BY ALL""",
        query.wanted.parameters,
    )
    return table


def _products(name: str, amount: str, parts: str) -> Iterator[tuple[str, str]]:
    """Yield the two sums of products of amounts and parts of :data:`WHOLE`, by their names: of the whole currency units
    of the amounts, and of what is below these."""
    yield name, one_of(f"sum({amount}_high * {parts})")
    yield f"{name}{FINE}", f"sum({amount}_low * {parts})"


def _shares_table(shares: Mapping[date, Mapping[str, Sequence[Receiver]]]) -> pa.Table:
    found = [
        (day, source, each.value, each.weight, each.passed)
        for day, of_day in shares.items()
        for source, receivers in of_day.items()
        for each in receivers
    ]
    columns = zip(_SHARES, zip(*found, strict=True), strict=True)
    return pa.table([pa.array(values, field.type) for field, values in columns], schema=_SHARES)


_UsageByDay = Mapping[date, Mapping[str, Mapping[str, int]]]


def shares_of(
    query: CategoryQuery, used: UsedCategory, whole: Scan, measured: Measured
) -> dict[date, Mapping[str, Sequence[Receiver]]]:
    """Return the receivers of reallocated cost of one category of a query, on the days of ``whole``: all rows of whole
    days.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    assignments = used.assignments
    if not assignments.category.share:
        return {}
    files = {file.day: file.path for file in whole.files if file.day is not None}
    new = {day for day, path in files.items() if path not in assignments.shares}
    if new:
        # Partial aggregates are those of weeks: they fit where no day between is left out.
        partials = query.partials if len(new) == len(files) else None
        of_days = replace(query, partials=partials, scan=whole.only(new), wanted=Condition())
        held = _held(of_days, used)
        usage = _usage(of_days, assignments, measured, new)
        for day in new:
            steps = day_steps(assignments.category, held[day], usage.get(day, {}), day)
            assignments.shares[files[day]] = composed(steps)
    return {day: found for day, path in files.items() if (found := assignments.shares[path])}


def _held(query: CategoryQuery, used: UsedCategory) -> dict[date, dict[str, int]]:
    """Return what each value was assigned on each day, in units."""
    alone = replace(used, shares={})
    sums = _summed(replace(query, used=(alone,)), ())
    rows = query.cursor.rows(f"SELECT date, {used.value}, {sums.sums['total']} FROM {sums.relation} GROUP BY ALL")
    held: dict[date, dict[str, int]] = defaultdict(dict)
    for day, value, total in rows:
        held[day][value] = to_units(total)
    return held


def _usage(query: CategoryQuery, assignments: Assignments, measured: Measured, days: Collection[date]) -> _UsageByDay:
    """Return the usage of each value, by day and metric. Measurements have an identity and a resource, and no
    product."""
    category = assignments.category
    metrics = sorted({each.metric for each in category.share if each.metric is not None})
    rows = list(measured.rows(query.cursor, days, metrics)) if metrics else []
    if not rows:
        return {}
    usage: dict[date, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    values = _values(query, assignments, sorted({(row["subject"], row["resource_id"]) for row in rows}))
    for row in rows:
        day, periods = row["date"], values[row["subject"], row["resource_id"]]
        outcome = next(outcome for first, end, outcome in periods if first <= day < end)
        for receiver, units in parts(to_units(row["value"]), outcome):
            usage[day][row["measure"]][receiver] += units
    return usage


def _values(
    query: CategoryQuery, assignments: Assignments, measured: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[date, date, Outcome]]]:
    """Return the value of each measured (identity, resource), by period."""
    environments = _environments(query)
    columns = used_columns(assignments.category)
    subjects = {
        (identity, resource): tuple(
            {"identity_id": identity, "resource_id": resource, "environment_id": environments.get(resource)}.get(name)
            for name in columns
        )
        for identity, resource in measured
    }
    distinct = list(dict.fromkeys(subjects.values()))
    by_column = zip(columns, zip(*distinct, strict=True), strict=False)
    table = pa.table({name: pa.array(values, pa.string()) for name, values in by_column})
    resolved = resolve(assignments.category, table, assignments.tags, assignments.names, query.cursor.check)
    found: dict[tuple[str | None, ...], list[tuple[date, date, Outcome]]] = defaultdict(list)
    for row in resolved.periods.to_pylist():
        subject = tuple(row[name] for name in columns)
        found[subject].append((row["first_day"], row["end_day"], resolved.outcomes[row["outcome"]]))
    return {each: found[subject] for each, subject in subjects.items()}


def _environments(query: CategoryQuery) -> dict[str, str]:
    """Return the environment of each resource, as it was billed."""
    columns = query.dataset.subjects
    condition = query.scan.condition()
    rows = query.cursor.rows(
        f"""SELECT {columns["resource_id"]}, min({columns["environment_id"]}) FROM {SOURCE}
            WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )
    return {resource: environment for resource, environment in rows if environment is not None}
