"""The checked bills, in FOCUS: a demo by identity and by topic, special lines, and the constructed bill of a cluster
without a provider."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
from tests.support.facts import TENANT_ID, line, tenant_store
from tests.support.focus import PROFILE, BilledLine, focus_source, write_bill, write_special_bill
from tests.support.months import AUGUST, SEPTEMBER, Months, months

from chargeback.config import load_configuration
from chargeback.demo.config import demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.contract import FocusEcosystem
from chargeback.ecosystems.discovery import load_ecosystems
from chargeback.model.days import DayRange, utc_now, utc_today
from chargeback.model.focus import IDENTITIES, TOPICS, V1_2
from chargeback.model.inventory import Identity, Resource
from chargeback.reports.focus.columns import FocusLayout
from chargeback.reports.focus.file import FocusSource, focus_batches, focus_schema
from chargeback.reports.focus.lookups import FocusTenant
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.tenant import TenantStore, open_store

_DEMO_DAYS: Final = 8
_ALWAYS: Final = DayRange(date(2000, 1, 1), date(2100, 1, 1))
_DAY: Final = date(2026, 2, 28)


def datasets() -> Iterator[tuple[str, pa.Table]]:
    """Yield the name and the rows of each bill; all have the same columns."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _demo(Path(folder))
    with tempfile.TemporaryDirectory() as folder, tenant_store(Path(folder)) as store:
        write_special_bill(store)
        with focus_source(store) as source:
            yield "special lines", _rows(source, IDENTITIES)
    with tempfile.TemporaryDirectory() as folder, tenant_store(Path(folder), name="own-cluster") as store:
        yield "constructed bill", _constructed(store)
    with tempfile.TemporaryDirectory() as folder, months(Path(folder)) as tenant:
        yield "months with corrections", _closed(tenant)


def _rows(source: FocusSource, split: str, days: DayRange = _ALWAYS) -> pa.Table:
    layout = FocusLayout(V1_2, split)
    return pa.Table.from_batches(list(focus_batches(source, layout, days)), focus_schema(source.columns(layout)))


def _demo(folder: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield a generated organisation, gathered and calculated as any other."""
    file = folder / "chargeback.yaml"
    with DemoServer(Organisation.generate(DemoSpec(today=utc_today(), size="small", days=_DEMO_DAYS))) as server:
        file.write_text(demo_configuration(server.info, folder), encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "chargeback", "run", "--config", str(file)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (tenant,) = load_configuration(file).tenants.values()
    with closing(open_store(tenant)) as store, focus_source(store, tenant) as source:
        for split in (IDENTITIES, TOPICS):
            yield f"demo by {split}", _rows(source, split)


def _constructed(store: TenantStore) -> pa.Table:
    """Daily and hourly lines of a cluster without a bill: without account and provider, most without environment. Names
    and tags are in other scripts."""
    shares = (("User:orders", 3), ("User:payments", 1), ("UNALLOCATED", 2))
    lines = [
        line(_DAY, "6", product="KAFKA_COMPUTE", unit_price=Decimal("0.25"), quantity=Decimal(24), unit="hour"),
        line(_DAY, "0.123456789012", product="KAFKA_STORAGE", environment_id="tokyo"),
        *(line(_DAY, "0.01", product="KAFKA_NETWORK_READ", hour=hour, granularity="hourly") for hour in range(24)),
    ]
    write_bill(store, [BilledLine(each, (shares,)) for each in lines])
    with store.control.write() as connection:
        ensure_known(
            connection,
            utc_now(),
            billed=[
                Resource("tokyo", "environment", "東京"),
                Resource(lines[0].resource_id, "kafka_cluster", "Zürich"),
            ],
            charged=[Identity("User:orders", "principal", "注文サービス")],
        )
        create(connection, TENANT_ID, TagWrite("resource", lines[0].resource_id, "Stadt", "Zürich"), "conformance")
    ecosystem = load_ecosystems().get("self_managed_kafka")
    assert isinstance(ecosystem, FocusEcosystem)
    with focus_source(store) as source:
        own = FocusTenant(store.tenant_name, store.tenant_id, ecosystem.focus_profile)
        return _rows(FocusSource(source.reader, source.control, own), IDENTITIES)


def _closed(tenant: Months) -> pa.Table:
    """A closed month, and the next one with a late bill, a line that was taken back, and a tag that has moved costs."""
    first, second = tenant.days[:2]
    tenant.tag("sa-1", "payments")
    tenant.close(AUGUST)
    tenant.charge(first, sa_1="7.123456789012", sa_2="4")
    tenant.bill([line(second, "-3", original_amount=Decimal(-3))], {"sa-2": "-3"})
    tenant.tag("sa-1", "search")
    with tenant.books() as reader:
        source = FocusSource(reader, tenant.store.control, FocusTenant("acme", "acme-id", PROFILE))
        return _rows(source, IDENTITIES, DayRange(AUGUST.days.start, SEPTEMBER.days.end))
