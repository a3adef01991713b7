"""Which rows of a dataset are meant: those of a window that match some filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chargeback.model.days import DayRange, InstantRange, start_of_day
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.scan import Condition
from chargeback.store.queries.tag_index import TagIndex

#: How rows without a tag are named in filters and groups.
UNTAGGED = "UNTAGGED"


@dataclass(frozen=True)
class TagFilter:
    """Rows whose resolved tag ``key`` has one of ``values``; any value where ``values`` is None.

    ``UNTAGGED`` among the values means rows without that tag.
    """

    key: str
    values: frozenset[str] | None = None


@dataclass(frozen=True)
class Selection:
    """The rows of ``window`` whose columns have the values of ``equal`` and that match every tag filter."""

    window: InstantRange
    equal: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[TagFilter, ...] = ()

    @classmethod
    def of_days(cls, days: DayRange) -> Selection:
        """Return the selection of all rows of some UTC days."""
        return cls(InstantRange(start_of_day(days.start), start_of_day(days.end)))

    def condition(self, dataset: Dataset, tags: TagIndex) -> Condition:
        """Return the filters as SQL over the rows of ``dataset``; the window is none of them.

        Raises:
            ValueError: the dataset cannot be filtered by one of the columns.
        """
        unknown = self.equal.keys() - set(dataset.filters)
        if unknown:
            raise ValueError(f"{dataset.table} cannot be filtered by {', '.join(sorted(unknown))}")
        condition = Condition(tuple(f"{name} = ${name}" for name in self.equal), dict(self.equal))
        for number, tag in enumerate(self.tags):
            condition &= _tag_condition(number, tag, dataset.tag_sources, tags)
        return condition


def _tag_condition(number: int, tag: TagFilter, sources: Mapping[str, str], tags: TagIndex) -> Condition:
    """Return a tag filter as SQL: a tag source decides only where none before it has the key."""
    wants_untagged = tag.values is not None and UNTAGGED in tag.values
    parameters: dict[str, object] = {}

    def among(entity: str, name: str, ids: list[str]) -> str:
        parameters[f"tag{number}_{name}"] = ids
        return f"{entity} IN (SELECT unnest($tag{number}_{name}::VARCHAR[]))"

    alternatives: list[str] = []
    undecided: list[str] = []
    for owner, entity in sources.items():
        holders = tags.holders(owner, tag.key)
        if not holders:
            continue
        holders_found = [holder for holder, value in holders.items() if tag.values is None or value in tag.values]
        if holders_found:
            alternatives.append(" AND ".join([*undecided, among(entity, f"wanted_{owner}", holders_found)]))
        undecided.append(f"NOT {among(entity, f'tagged_{owner}', list(holders))}")
    if wants_untagged:
        if not undecided:
            return Condition()
        alternatives.append(" AND ".join(undecided))
    sql = f"({' OR '.join(f'({each})' for each in alternatives) or 'FALSE'})"
    # DuckDB refuses values that the SQL does not name.
    return Condition((sql,), {name: ids for name, ids in parameters.items() if f"${name}:" in sql})
