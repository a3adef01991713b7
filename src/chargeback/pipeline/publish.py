"""Publishes the tables for other engines, at the end of a run (see :mod:`~chargeback.store.facts.published`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from sqlalchemy import Connection

from chargeback.errors import StorageError
from chargeback.pipeline.run_context import RunContext
from chargeback.store.control.catalogue import every_file, read_published_revision, save_published_revision
from chargeback.store.control.day_revisions import read_day_revisions
from chargeback.store.control.lease import Lease
from chargeback.store.facts.published import publish, shorten_logs
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.as_of import REVISED, REVISED_BY

log = logging.getLogger(__name__)


def publish_run(run: RunContext) -> None:
    """Publish what the run has changed, unless the tenant's configuration turns this off.

    An error is recorded, and the next run tries again: other engines then see the tables as they were.
    """
    if run.tenant.settings.storage.publish == "none":
        return
    try:
        publish_tables(run.store.facts, run.lease)
    except StorageError as error:
        run.record_error(f"the tables are not published for other engines, which see those of an earlier run: {error}")


def publish_tables(facts: FactTables, lease: Lease, *, from_scratch: bool = False) -> int:
    """Add to the logs of the tables what only the catalogue has; return how many tables were changed.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: a log cannot be written.
    """
    with facts.control.read() as connection:
        present, published = read_published_revision(connection)
        if present == published and not from_scratch:
            return 0
        files, instants = every_file(connection, kept_only=True), _instants(connection)
    changed = publish(facts.place, files, instants, from_scratch=from_scratch)
    if changed:
        shorten_logs(facts.place)
    with lease.write() as connection:
        save_published_revision(connection, present)
    return changed


def _instants(connection: Connection) -> Mapping[str, Mapping[date, Sequence[datetime]]]:
    """Return the instants of the revisions of each table's days."""
    of_dataset: dict[str, dict[date, list[datetime]]] = {name: {} for name in REVISED}
    for name, of_days in of_dataset.items():
        for revision in read_day_revisions(connection, name):
            of_days.setdefault(revision.tracking_date, []).append(revision.calculated_at)
    return {table: of_dataset[dataset.name] for table, dataset in REVISED_BY.items()}
