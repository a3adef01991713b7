"""What a scope lets someone see beside rows: the identities and resources that occur in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from chargeback.model.days import DayRange
from chargeback.store.control.tags import RESOURCE
from chargeback.store.queries.datasets import DATASETS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.partials import Addends
from chargeback.store.queries.selection import Selection

if TYPE_CHECKING:
    from chargeback.store.queries.reader import TenantReader

_IDENTITY: Final = "identity_id"
_ENVIRONMENT: Final = "environment_id"


@dataclass(frozen=True)
class VisibleEntities:
    """The ids of identities and of resources; environments, clusters and topics are resources, too."""

    identities: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()

    def __or__(self, other: VisibleEntities) -> VisibleEntities:
        return VisibleEntities(self.identities | other.identities, self.resources | other.resources)


def entities_seen(reader: TenantReader) -> VisibleEntities:
    """Return what occurs in the rows that a reader sees, on any day, with the clusters that it lies in.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    found = VisibleEntities()
    for dataset in DATASETS:
        days = reader.dates(dataset)
        if not days:
            continue
        selection = Selection.of_days(DayRange.spanning(days))
        if reader.days_of(dataset, selection) is not None:
            query = partial(_in_rows, reader.cursor, dataset)
            found |= reader.add_up(dataset, selection, ", ".join(_columns(dataset).values()), query)
    clusters: Mapping[str, str] = reader.clusters() if found.resources else {}
    return found | VisibleEntities(resources=frozenset(clusters[each] for each in found.resources & clusters.keys()))


def _columns(dataset: Dataset) -> dict[str, str]:
    """Return the columns of a dataset with ids of identities, resources and environments, as SQL."""
    columns = {name: dataset.subjects[name] for name in ("resource_id", _ENVIRONMENT)}
    if _IDENTITY in dataset.subjects:
        columns[_IDENTITY] = dataset.subjects[_IDENTITY]
    if dataset is TOPIC_ATTRIBUTIONS:
        columns["topic"] = dataset.tag_sources[RESOURCE]
    return columns


def _in_rows(cursor: Cursor, dataset: Dataset, source: Addends) -> VisibleEntities:
    columns = _columns(dataset)
    rows = cursor.rows(
        f"SELECT DISTINCT {', '.join(columns.values())} FROM {source.relation} WHERE {source.condition.sql}",
        source.condition.parameters,
    )
    by_name = dict(zip(columns, map(frozenset, zip(*rows, strict=True)), strict=False))
    identities: frozenset[str] = by_name.pop(_IDENTITY, frozenset())
    return VisibleEntities(identities, frozenset[str]().union(*by_name.values()) - {None})
