"""Which rows of a dataset are meant: those of a window that match some filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import and_

from chargeback.model.dated import FOREVER, Period
from chargeback.model.days import DayRange, InstantRange
from chargeback.model.inventory import UNTAGGED
from chargeback.store.queries.clusters import CLUSTER_ID, ClusterLookup
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.scan import Condition
from chargeback.store.queries.tag_index import TagIndex


@dataclass(frozen=True)
class ColumnFilter:
    """Rows whose ``column`` has one of ``values``; with ``excludes``, all other rows.

    The empty text among the values means rows without a value.
    """

    column: str
    values: frozenset[str]
    excludes: bool = False


@dataclass(frozen=True)
class TagFilter:
    """Rows whose resolved tag ``key`` has one of ``values``, or any value where these are None; with ``excludes``, all
    other rows.

    ``UNTAGGED`` among the values means rows without that tag. One that ``is_present`` is about the present tags, also
    where the question is about an earlier instant.
    """

    key: str
    values: frozenset[str] | None = None
    excludes: bool = False
    is_present: bool = False


@dataclass(frozen=True)
class CategoryFilter:
    """What belongs to one of ``values`` of the cost category ``key``, or to a value below one of them; with
    ``excludes``, all else.
    """

    key: str
    values: frozenset[str]
    excludes: bool = False


@dataclass(frozen=True)
class Selection:
    """The rows of ``window`` that match every filter, and whose amount is at least ``min_amount``, if that is given: of
    what a reader sees of them.

    A row that a cost category splits is selected with those of its parts that ``categories`` allow.
    """

    window: InstantRange
    columns: tuple[ColumnFilter, ...] = ()
    tags: tuple[TagFilter, ...] = ()
    min_amount: Decimal | None = None
    categories: tuple[CategoryFilter, ...] = ()

    @classmethod
    def of_days(cls, days: DayRange) -> Selection:
        """Return the selection of all rows of some UTC days."""
        return cls(days.window)

    @property
    def chooses_rows(self) -> bool:
        """Whether it selects some rows of the window, and not all of them or the parts of all of them."""
        return bool(self.columns or self.tags or self.min_amount is not None)

    def condition(
        self,
        dataset: Dataset,
        tags: TagIndex,
        clusters: ClusterLookup = dict,
        present_tags: TagIndex | None = None,
    ) -> Condition:
        """Return the filters by columns and tags as SQL over the rows of ``dataset``; ``present_tags`` are the present
        ones, if ``tags`` are those of an earlier instant.

        Raises:
            ValueError: the dataset cannot be filtered by one of the columns.
        """
        unknown = {each.column for each in self.columns} - set(dataset.filters)
        if unknown:
            raise ValueError(f"{dataset.table} cannot be filtered by {', '.join(sorted(unknown))}")
        of_scope = tags if present_tags is None else present_tags
        condition = Condition()
        if self.min_amount is not None:
            enough = f"{dataset.amount} >= $min_amount"
            condition &= Condition((enough,), {"min_amount": self.min_amount}, frozenset([dataset.amount]))
        for number, column in enumerate(self.columns):
            stored = _by_resource(column, dataset.cluster_of, clusters()) if column.column == CLUSTER_ID else column
            condition &= _column_condition(f"column{number}", stored)
        for number, tag in enumerate(self.tags):
            condition &= _tag_condition(number, tag, dataset, of_scope if tag.is_present else tags)
        return condition


def equal(**values: str) -> tuple[ColumnFilter, ...]:
    """Return the filters for rows whose columns have these values."""
    return tuple(ColumnFilter(name, frozenset([value])) for name, value in values.items())


def _by_resource(column: ColumnFilter, source: str, clusters: Mapping[str, str]) -> ColumnFilter:
    """Return a filter by clusters as one by the resources in them, whose ids are in the column ``source``."""
    within = frozenset(resource for resource, cluster in clusters.items() if cluster in column.values)
    if "" not in column.values:
        return ColumnFilter(source, within, column.excludes)
    return ColumnFilter(source, frozenset(clusters) - within, not column.excludes)


def _column_condition(name: str, column: ColumnFilter) -> Condition:
    """Return a column's filter as SQL; ``name`` is that of its parameter."""
    named, reads = column.values - {""}, frozenset([column.column])
    alternatives = [Condition((f"{column.column} IS NULL",), {}, reads)] if "" in column.values else []
    if len(named) == 1:
        (value,) = named
        alternatives.append(Condition((f"{column.column} = ${name}",), {name: value}, reads))
    elif named:
        listed = f"{column.column} IN (SELECT unnest(${name}::VARCHAR[]))"
        alternatives.append(Condition((listed,), {name: sorted(named)}, reads))
    return _any_of(alternatives, excludes=column.excludes)


def _tag_condition(number: int, tag: TagFilter, dataset: Dataset, tags: TagIndex) -> Condition:
    """Return a tag filter as SQL: a tag source decides only where none before it has the key on the row's UTC day."""
    wants_untagged = tag.values is not None and UNTAGGED in tag.values
    alternatives: list[Condition] = []
    undecided = Condition()
    for owner in dataset.tag_sources:
        holders = tags.holders(owner, tag.key)
        if not holders:
            continue
        found = {
            holder: [each.during for each in values if tag.values is None or each.value in tag.values]
            for holder, values in holders.items()
        }
        if any(found.values()):
            alternatives.append(undecided & _held_by(dataset, owner, f"tag{number}_wanted_{owner}", found))
        everything = {holder: [each.during for each in values] for holder, values in holders.items()}
        holds = _held_by(dataset, owner, f"tag{number}_tagged_{owner}", everything)
        undecided &= Condition((f"NOT {holds.sql}",), holds.parameters, holds.reads)
    if wants_untagged:
        alternatives.append(undecided)
    return _any_of(alternatives, excludes=tag.excludes)


def _held_by(dataset: Dataset, owner: str, name: str, holders: Mapping[str, Sequence[Period]]) -> Condition:
    """Return the condition that a row is of one of some holders of a tag on one of its days; ``name`` begins those of
    the parameters."""
    entity, reads = dataset.tag_sources[owner], dataset.tag_columns_of(owner)
    undated = [holder for holder, periods in holders.items() if FOREVER in periods]
    dated = [(holder, each) for holder, periods in holders.items() for each in periods if each != FOREVER]
    parameters: dict[str, object] = {}
    parts = []
    if undated or not dated:
        parameters[name] = undated
        parts.append(f"{entity} IN (SELECT unnest(${name}::VARCHAR[]))")
    if dated:
        reads |= {"date"}
        parameters[f"{name}_ids"] = [holder for holder, _ in dated]
        parameters[f"{name}_firsts"] = [each.first or date.min for _, each in dated]
        parameters[f"{name}_ends"] = [each.end or date.max for _, each in dated]
        parts.append(
            f"EXISTS (SELECT 1 FROM (SELECT unnest(${name}_ids::VARCHAR[]) AS holder, "
            f"unnest(${name}_firsts::DATE[]) AS holds_from, unnest(${name}_ends::DATE[]) AS holds_to) "
            f"WHERE holder = {entity} AND holds_from <= date AND date < holds_to)"
        )
    return Condition((parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})",), parameters, reads)


def _any_of(alternatives: Sequence[Condition], *, excludes: bool) -> Condition:
    """Return the condition that one of some alternatives holds, or, if it ``excludes``, that none does."""
    if any(not each.clauses for each in alternatives):
        return Condition(("FALSE",)) if excludes else Condition()
    sql = f"({' OR '.join(f'({each.sql})' for each in alternatives) or 'FALSE'})"
    together = reduce(and_, alternatives, Condition())
    return replace(together, clauses=(f"({sql} IS NOT TRUE)" if excludes else sql,))
