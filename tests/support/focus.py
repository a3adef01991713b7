"""Small bills for tests of the data in FOCUS, written to a real storage, and the data read from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from chargeback.allocation.split import split_exactly
from chargeback.config import Tenant
from chargeback.ecosystems.focus import FocusProfile
from chargeback.model.billing import BillingLine, line_ids
from chargeback.model.days import DayRange
from chargeback.model.inventory import Identity, Resource
from chargeback.model.money import from_units, to_units
from chargeback.reports.focus.columns import FocusLayout
from chargeback.reports.focus.file import FocusSource, focus_batches, focus_csv, focus_schema
from chargeback.reports.focus.lookups import FocusTenant
from chargeback.reports.focus.metadata import focus_metadata
from chargeback.store.control.days import save_day
from chargeback.store.control.inventory import ensure_known
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, SCHEMAS, TOPICS_TABLE, read_files
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from chargeback.store.tenant import TenantStore
from tests.support.days import set_chargebacks, set_topics
from tests.support.facts import Share, days_from, line, replace_day, write_lines, write_shares
from tests.support.topics import TopicShare, write_topic_shares

PROFILE = FocusProfile.model_validate(
    {
        "issuer": "Confluent",
        "account_type": "organization",
        "credits": ["PROMO_CREDIT"],
        "recurring": ["SUPPORT*"],
        "units": {"bytes_in": "B"},
        "services": {"KAFKA": {"name": "Kafka", "category": "Integration", "subcategory": "Messaging"}},
    }
)
#: Identity → weight.
Weights = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class BilledLine:
    """A billing line with its shares: the weights of identities in each of its portions, and those of topics."""

    line: BillingLine
    portions: tuple[Weights, ...] = ((("sa-1", 1),),)
    topics: Weights = ()


@dataclass(frozen=True)
class FocusData:
    """The data read for a bill, and the billing lines that it must represent."""

    table: pa.Table
    csv: str
    metadata: dict[str, Any]
    bill: list[dict[str, Any]]
    layout: FocusLayout = field(default_factory=FocusLayout)


def write_bill(store: TenantStore, billed: Sequence[BilledLine], uncalculated: Collection[date] = ()) -> None:
    """Write a bill with its charges."""
    write_lines(store.facts, [each.line for each in billed])
    shares: list[Share] = []
    topics: list[TopicShare] = []
    days = sorted({each.line.day for each in billed})
    for day in days:
        of_day = [each for each in billed if each.line.day == day]
        for each, line_id in zip(of_day, line_ids([each.line for each in of_day]), strict=True):
            shares += _shares(each, line_id)
            topics += _topics(each, line_id)
    write_shares(store.facts, shares)
    write_topic_shares(store.facts, topics)
    with store.control.write() as connection:
        for day in days:
            is_calculated = day not in uncalculated
            save_day(connection, day, gathered_at=datetime(2026, 4, 1, tzinfo=UTC))
            if is_calculated:
                set_chargebacks(connection, day)
                set_topics(connection, day)


def _shares(billed: BilledLine, line_id: str) -> Iterator[Share]:
    line = billed.line
    numbers = [(str(number), 1) for number in range(len(billed.portions))]
    parts = dict(split_exactly(to_units(line.total_cost), numbers))
    for number, weights in enumerate(billed.portions):
        for identity, units in split_exactly(parts[str(number)], sorted(weights)):
            if units:
                yield Share(
                    line.day,
                    identity,
                    str(from_units(units)),
                    resource=line.resource_id,
                    product=line.product_type,
                    product_category=line.product_category,
                    environment=line.environment_id,
                    hour=line.timestamp.hour,
                    line=line_id,
                    portion=number + 1,
                    cost_type="usage" if number == 0 else "shared",
                )


def _topics(billed: BilledLine, line_id: str) -> Iterator[TopicShare]:
    line = billed.line
    for topic, units in split_exactly(to_units(line.total_cost), sorted(billed.topics)) if billed.topics else ():
        if units:
            yield TopicShare(
                line.day,
                topic,
                str(from_units(units)),
                cluster=line.resource_id,
                product=line.product_type,
                hour=line.timestamp.hour,
                line=line_id,
                method="even_split",
            )


@contextmanager
def focus_source(store: TenantStore, tenant: Tenant | None = None) -> Iterator[FocusSource]:
    """Open the source of FOCUS data of a storage; without a configured tenant, with the profile of the tests."""
    whose = FocusTenant(store.tenant_name, store.tenant_id, PROFILE) if tenant is None else FocusTenant.of(tenant)
    with QueryEngine(threads=1) as engine, open_reader(engine, store, CancellationToken(), LookupCaches()) as reader:
        yield FocusSource(reader, store.control, whose)


def read_focus(source: FocusSource, layout: FocusLayout, days: DayRange, calculated: Iterable[date]) -> FocusData:
    """Return all data about some days, some of which are ``calculated``."""
    batches = list(focus_batches(source, layout, days))
    table = pa.Table.from_batches(batches, focus_schema(source.columns(layout)))
    text = b"".join(focus_csv(source, layout, days)).decode()
    lines = source.reader.snapshot(BILLING_TABLE)
    of_days = (read_files(BILLING_TABLE, day, lines.of_day(day)) for day in sorted(calculated))
    bill = [row for table in of_days for row in table.to_pylist()]
    metadata = focus_metadata(source, layout, days).model_dump(mode="json", by_alias=True)
    return FocusData(table, text, metadata, bill, layout)


def layouts() -> list[FocusLayout]:
    """Return each version with each split."""
    return [FocusLayout(version, split) for version in ("1.2", "1.4") for split in ("identities", "topics", "none")]


def clear_days(store: TenantStore, days: Iterable[date]) -> None:
    """Remove all rows of some days."""
    for day in days:
        for table in (BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE):
            replace_day(store.facts, table, day, SCHEMAS[table].empty_table())


DAY = date(2026, 2, 27)
DAYS = days_from(DAY, 4)
THIRDS = tuple((f"sa-{number}", 1) for number in range(3))
TOPIC_WEIGHTS = (("a", 2), ("b", 1), ("__UNATTRIBUTED__", 1))
PRICED: dict[str, Any] = {"unit_price": Decimal("0.25"), "quantity": Decimal(8), "unit": "GB-hour"}
#: Unusual lines, all on one day.
SPECIAL_LINES = [
    BilledLine(line(DAY, "0", product="KAFKA_BASE", **PRICED)),  # a full discount
    BilledLine(line(DAY, "0", product="FREE")),
    BilledLine(line(DAY, "0.000000000001", product="TINY", **PRICED), (THIRDS,)),
    BilledLine(line(DAY, "10", product="THIRDS", original_amount=Decimal("12.5"), **PRICED), (THIRDS, THIRDS)),
    BilledLine(line(DAY, "-2", product="REFUND", original_amount=Decimal(-2), **PRICED), (THIRDS,), TOPIC_WEIGHTS),
    BilledLine(
        line(DAY, "-2", product="REFUND_2", **{**PRICED, "quantity": Decimal(-8), "original_amount": Decimal(-2)}),
        (THIRDS,),
    ),
    BilledLine(line(DAY, "-2", product="REFUND_3", **{**PRICED, "unit_price": Decimal("-0.25")}), (THIRDS,)),
    BilledLine(line(DAY, "3.3", product="NO_QUANTITY"), (THIRDS,)),
    BilledLine(
        line(DAY, "1.11", product="ROUNDED", unit_price=Decimal("0.0111111"), quantity=Decimal("99.9")), (THIRDS,)
    ),
    BilledLine(
        line(DAY, "25", product="MANY"), (tuple((f"sa-{number:04}", 1 + number % 7) for number in range(3000)),)
    ),
    BilledLine(
        line(DAY, "1000000", product="LARGE", unit_price=Decimal("0.00000001"), quantity=Decimal(10**14)), (THIRDS,)
    ),
    BilledLine(line(DAY, "1", product="HUGE", unit_price=Decimal("0.01"), quantity=Decimal(10**20)), (THIRDS,)),
    BilledLine(
        line(DAY, "1.111111111111", product="DEAR", unit_price=Decimal(250_000), quantity=Decimal("0.000004444444")),
        ((("sa-1", 1), ("sa-2", 999_999)),),
    ),
    BilledLine(replace(line(DAY, "4", product="UNKNOWN"), product_category="NEW"), ((("UNALLOCATED", 1),),)),
    BilledLine(line(DAY, "-5", product="PROMO_CREDIT", original_amount=Decimal(-5)), (THIRDS,)),
    BilledLine(line(DAY, "7", product="SUPPORT_GOLD", resource="org-1"), (THIRDS,)),
    BilledLine(
        line(
            DAY,
            "8",
            product="TEXTS",
            environment_id="env-1",
            resource_name='a, "quoted"\nname',
            network_access_type="PRIVATE_LINK",
            tier="lower=1;upper=2",
            description="=1+1",
            **PRICED,
        ),
        (THIRDS,),
        TOPIC_WEIGHTS,
    ),
]


def write_special_bill(store: TenantStore) -> None:
    """Write the unusual lines, hourly ones of the next month, and a day that is not calculated; also an inventory."""
    hours = [BilledLine(line(DAYS[2], "0.5", hour=hour, granularity="hourly"), (THIRDS,)) for hour in (0, 23)]
    write_bill(store, [*SPECIAL_LINES, *hours, BilledLine(line(DAYS[3], "100"))], uncalculated={DAYS[3]})
    with store.control.write() as connection:
        ensure_known(
            connection,
            datetime(2026, 1, 1, tzinfo=UTC),
            billed=[
                Resource("org-1", "organization", "Acme"),
                Resource("env-1", "environment", "prod", metadata={"region": "eu-1"}),
                Resource("lkc-1", "kafka_cluster", "orders", "env-1", metadata={"cloud": "AWS"}),
            ],
            charged=[Identity("sa-1", "service_account", "checkout")],
        )
