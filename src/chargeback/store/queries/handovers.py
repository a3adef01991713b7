"""What values of a cost category hand on to others, by day.

Weights are those of a whole UTC day of the whole bill, whatever a question is filtered by: a value gets the same part
of a row on every page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date

import pyarrow as pa

from chargeback.categories.handover import Receiver, composed, day_steps
from chargeback.categories.resolve import resolve, used_columns
from chargeback.categories.weights import Outcome, parts
from chargeback.model.money import to_units
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.categorised import CategoryQuery, categorised
from chargeback.store.queries.category_join import UsedCategory
from chargeback.store.queries.measurements import Measured
from chargeback.store.queries.scan import SOURCE, Condition, Scan

_UsageByDay = Mapping[date, Mapping[str, Mapping[str, int]]]


def shares_of(
    query: CategoryQuery, used: UsedCategory, whole: Scan, measured: Measured
) -> dict[date, Mapping[str, Sequence[Receiver]]]:
    """Return who gets the cost of the values of one category of a query that hand it on, on the days of ``whole``: all
    rows of whole days.

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
    sums = categorised(replace(query, used=(alone,)), ())
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
