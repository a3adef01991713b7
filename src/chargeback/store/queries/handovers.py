"""What values of a cost category hand on to others, by day.

Proportions are those of a whole UTC day of the whole bill, whatever a question is filtered by: a value gets the same
part of a row on every page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

import pyarrow as pa

from chargeback.categories.handover import Step, day_steps
from chargeback.categories.resolve import resolve, used_columns
from chargeback.categories.weights import Outcome, parts
from chargeback.model.money import to_units
from chargeback.store.facts.files import DayFile
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.categorised import CategoryQuery, categorised
from chargeback.store.queries.category_join import HandedOn, UsedCategory
from chargeback.store.queries.scan import SOURCE, Condition, Scan

_UsageByDay = Mapping[date, Mapping[str, Mapping[str, int]]]


def handed_on(query: CategoryQuery, used: UsedCategory, whole: Scan, usage: Sequence[DayFile]) -> tuple[HandedOn, ...]:
    """Return what the values of one category of a query hand on, in order, on the days of ``whole``: all rows of whole
    days. ``usage`` are the files of what was measured on these days.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    assignments = used.assignments
    if not assignments.category.share:
        return ()
    files = {file.day: file.path for file in whole.files if file.day is not None}
    new = {day for day, path in files.items() if path not in assignments.steps}
    if new:
        of_days = replace(query, scan=whole.only(new), wanted=Condition())
        held = _held(of_days, used)
        measured = _measured(of_days, assignments, [file for file in usage if file.day in new])
        for day in new:
            assignments.steps[files[day]] = day_steps(assignments.category, held[day], measured.get(day, {}), day)
    by_day = {day: assignments.steps[path] for day, path in files.items()}
    return tuple(HandedOn(each.source, dict(_proportions(by_day, each.source))) for each in assignments.category.share)


def _proportions(steps: Mapping[date, Sequence[Step]], source: str) -> Iterator[tuple[date, Sequence[tuple[str, int]]]]:
    for day, of_day in steps.items():
        for step in of_day:
            if step.source == source and step.parts:
                yield day, step.parts


def _held(query: CategoryQuery, used: UsedCategory) -> dict[date, dict[str, int]]:
    """Return what each value was assigned on each day, in units."""
    alone = replace(used, handovers=())
    sums = categorised(replace(query, partials=None, used=(alone,)), ())
    rows = query.cursor.rows(f"SELECT date, {used.value}, {sums.sums['total']} FROM {sums.relation} GROUP BY ALL")
    held: dict[date, dict[str, int]] = defaultdict(dict)
    for day, value, total in rows:
        held[day][value] = to_units(total)
    return held


def _measured(query: CategoryQuery, assignments: Assignments, files: Sequence[DayFile]) -> _UsageByDay:
    """Return what was measured of each value, by day and metric. Measurements have an identity and a resource, and no
    product."""
    category = assignments.category
    metrics = sorted({each.metric for each in category.share if each.metric is not None})
    if not metrics or not files:
        return {}
    rows = query.cursor.rows(
        f"""SELECT date, measure, subject, resource_id, sum(value) FROM {SOURCE}
            WHERE measure IN (SELECT unnest($metrics::VARCHAR[])) GROUP BY ALL""",
        {"files": files, "metrics": metrics},
    )
    measured: dict[date, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    values = _values(assignments, _environments(query), sorted({(row[2], row[3]) for row in rows}))
    for day, metric, identity, resource, value in rows:
        outcome = next(outcome for first, end, outcome in values[identity, resource] if first <= day < end)
        for receiver, units in parts(to_units(value), outcome):
            measured[day][metric][receiver] += units
    return measured


def _values(
    assignments: Assignments, environments: Mapping[str, str], measured: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[date, date, Outcome]]]:
    """Return the value of each measured (identity, resource), by period."""
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
    resolved = resolve(assignments.category, table, assignments.tags, assignments.names)
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
