"""A tenant whose tables other engines read, and the expected sums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.pipeline.publish import publish_tables
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    TOPICS_TABLE,
    FactTables,
    read_day,
)
from tests.support.deployments import Deployment
from tests.support.facts import replace_day

#: The column of amounts in each table.
MONEY: Final = {BILLING_TABLE: "total_cost", CHARGEBACKS_TABLE: "amount", TOPICS_TABLE: "amount"}

#: Table → day as ISO text → number of rows, and the exact sum of amounts.
Sums = dict[str, dict[str, tuple[int, Decimal]]]


@contextmanager
def readable_tenant(organisation: Organisation, folder: Path) -> Iterator[FactTables]:
    """Yield the facts of a calculated tenant, with unreferenced files next to its tables: a reader of the folder
    instead of the log would read rows twice."""
    with DemoServer(organisation) as server:
        deployment = Deployment.within(server, folder)
        deployment.run()
        facts = deployment.store.facts
        for name in MONEY:
            day = facts.snapshot(name).days[0]
            rows = read_day(facts, name, day)
            replace_day(facts, name, day, rows.slice(0, rows.num_rows // 2))
        publish_tables(facts, deployment.store.acquire(LeaseOwner.this_process()))
        try:
            yield facts
        finally:
            deployment.store.close()


def own_sums(facts: FactTables) -> Sums:
    """Return the sums as read by this project."""
    found: Sums = {}
    for name, money in MONEY.items():
        found[name] = {}
        for day in facts.snapshot(name).days:
            rows = read_day(facts, name, day)
            found[name][day.isoformat()] = (rows.num_rows, exact_sum(rows[money]))
    return found


def exact_sum(amounts: pa.ChunkedArray) -> Decimal:
    """Return the exact sum of the stored amounts."""
    total = pc.sum(amounts).as_py()
    assert isinstance(total, Decimal)
    return total
