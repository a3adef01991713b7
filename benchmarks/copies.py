"""Facts in object storage: queries whose files have local copies, compared with facts on a local disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from tests.support.objects import new_bucket

from benchmarks.measure import Figure, milliseconds
from benchmarks.tenants import Generated, opened
from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.tenant import TenantStore

_UTC: Final = ZoneInfo("UTC")
#: Columns that no partial aggregate has, so that the rows are read.
_BY: Final = ("identity_id", "resource_id", "product_type", "allocation_method")
_PAGE: Final = 100


def copies(tenant: Generated, scratch: Path, *, repeats: int) -> Iterator[Figure]:
    """Upload the facts of a tenant, and measure queries when their files have copies; the reference has the facts in a
    folder. Also measure the first query, which fetches the files."""
    name = tenant.shape.name
    scratch.mkdir()
    store = opened(tenant, scratch / "control.db")
    bucket = new_bucket(scratch)
    bucket.load(tenant.facts)
    far = replace(store, facts=FactTables(bucket, store.control))
    selection = Selection(instants(tenant.shape.dates()[0], tenant.shape.last_day))
    page = Page(tenant.rows // 2 // _PAGE * _PAGE, _PAGE)
    asked: dict[str, Callable[[TenantReader], object]] = {
        "aggregate of all rows": lambda reader: reader.aggregate(CHARGEBACKS, selection, Grouping(_BY, "month", _UTC)),
        "list, middle page": lambda reader: reader.list_rows(CHARGEBACKS, selection, page),
    }
    with closing(store), QueryEngine() as engine:
        start = time.perf_counter()
        first = _answer(engine, far, asked["aggregate of all rows"])
        fetched = (time.perf_counter() - start) * 1000
        if first != _answer(engine, store, asked["aggregate of all rows"]):
            raise RuntimeError("the sums of the bucket are not those of the folder")
        yield Figure(f"copies, {name}", "aggregate of all rows, which fetches them", fetched, "ms")
        for question, ask in asked.items():
            near = milliseconds(partial(_answer, engine, store, ask), repeats=repeats)
            warm = milliseconds(partial(_answer, engine, far, ask), repeats=repeats)
            yield Figure(f"copies, {name}", question, warm, "ms", reference=near, note="the reference is a folder")


def _answer(engine: QueryEngine, store: TenantStore, ask: Callable[[TenantReader], object]) -> object:
    with open_reader(engine, store, CancellationToken(), LookupCaches()) as reader:
        return ask(reader)
