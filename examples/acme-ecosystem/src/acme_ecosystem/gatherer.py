"""Reads ACME's files."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from chargeback.ecosystems.contract import Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.errors import SourceDataError, SourceUnavailable
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange, start_of_day
from chargeback.model.inventory import Identity, Inventory, ListedInventory, Resource
from chargeback.model.money import parse_decimal, to_amount
from chargeback.model.usage import USAGE, parse_quantity

BUCKET = "bucket"
ACCOUNT = "acme_account"
TEAM = "team"


class AcmeGatherer:
    """Gathers the data of one tenant of ACME storage."""

    def __init__(self, context: TenantContext, folder: Path) -> None:
        self._context = context
        self._folder = folder

    def __enter__(self) -> AcmeGatherer:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no file is open between two calls."""

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        """Yield every day of the range exactly once; a day without charges has no lines."""
        charged: dict[date, list[dict[str, str]]] = defaultdict(list)
        for row in self._rows("costs.csv"):
            charged[date.fromisoformat(row["date"])].append(row)
        for day in days:
            try:
                yield GatheredDay(day, [self._line(day, row) for row in charged[day]])
            except ValueError as mistake:
                yield GatheredDay(day, error=f"costs.csv: {mistake}")

    def _line(self, day: date, row: dict[str, str]) -> BillingLine:
        is_bucket = bool(row["bucket"])
        return BillingLine(
            day=day,
            timestamp=start_of_day(day),
            resource_id=row["bucket"] or self._context.tenant_id,
            resource_type=BUCKET if is_bucket else ACCOUNT,
            product_category="ACME",
            product_type=row["product"],
            total_cost=to_amount(parse_decimal(row["cost"])),
            currency=self._context.currency,
        )

    def inventory(self) -> ListedInventory:
        """Return the buckets and the teams that own them."""
        rows = self._rows("buckets.csv")
        account = Resource(self._context.tenant_id, ACCOUNT, "ACME account")
        buckets = [
            Resource(row["bucket"], BUCKET, parent_id=account.resource_id, owner_id=row["team"] or None) for row in rows
        ]
        teams = [Identity(name, TEAM, name) for name in sorted({row["team"] for row in rows} - {""})]
        return ListedInventory(Inventory([account, *buckets], teams), complete=frozenset({ACCOUNT, BUCKET, TEAM}))

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """Return the requests of each team on each bucket."""
        totals: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        dropped = 0
        for row in self._rows("requests.csv"):
            if row["date"] == day.isoformat():
                count = parse_quantity(row["requests"])
                if count is None:
                    dropped += 1
                else:
                    totals[row["bucket"], row["team"]] += count
        rows = [
            {"date": day, "measure": "requests", "resource_id": bucket, "subject": team, "value": count}
            for (bucket, team), count in sorted(totals.items())
        ]
        return MeasuredUsage(pa.Table.from_pylist(rows, schema=USAGE), dropped)

    def topics(self, day: date) -> MeasuredUsage:
        """Return an empty table: storage has no topics."""
        return MeasuredUsage(USAGE.empty_table())

    def check(self) -> Iterator[Finding]:
        """Yield one finding per file: whether it can be read."""
        for name in ("costs.csv", "buckets.csv", "requests.csv"):
            try:
                yield Finding(name, ok=True, detail=f"{len(self._rows(name))} rows")
            except (SourceUnavailable, SourceDataError) as error:
                yield Finding(name, ok=False, detail=str(error))

    def _rows(self, name: str) -> list[dict[str, str]]:
        try:
            with (self._folder / name).open(newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        except UnicodeDecodeError:
            raise SourceDataError(f"{name} is not UTF-8 text", source="acme") from None
        except OSError as error:
            raise SourceUnavailable(f"{name} cannot be read: {error.strerror}", source="acme") from None
