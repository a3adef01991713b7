"""Scopes: sums of the rows that a caller may see, compared with the same sums over all rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from benchmarks.categories import mixed_rules
from benchmarks.measure import Figure, milliseconds
from benchmarks.tenants import Generated, opened
from chargeback.access.scope import RowScope
from chargeback.categories.parsing import parse_category
from chargeback.model.days import instants
from chargeback.reports.categories.editing import save_categories
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.tenant import TenantStore

_UTC: Final = ZoneInfo("UTC")
_CATEGORY: Final = "bench"
_SCOPES: Final = {
    "identities": {"identity_id": [f"sa-{number:06d}" for number in range(20)]},
    "a tag": {"tag:team": ["team-1"]},
    "a cluster": {"cluster_id": ["lkc-1"]},
    "an environment": {"environment_id": ["env-1"]},
    "a category": {f"category:{_CATEGORY}": ["team 1"]},
}
_BY: Final = ("identity_id", "resource_id", "product_type", "tag:team", f"category:{_CATEGORY}")


def scopes(tenant: Generated, scratch: Path, *, repeats: int) -> Iterator[Figure]:
    """Measure sums within scopes of several kinds; the reference is the same query without a scope."""
    store = opened(tenant, scratch / f"scopes-{tenant.shape.name}.db")
    category = parse_category(_CATEGORY, {"rules": mixed_rules()})
    with closing(store), QueryEngine() as engine:
        with store.control.write() as connection:
            save_categories(connection, [category], who="benchmarks")
        caches = LookupCaches()
        for by in _BY:
            asked = partial(_asked, engine, store, tenant, by)
            whole = milliseconds(partial(asked, None, caches), repeats=repeats)
            for name, conditions in _SCOPES.items():
                scope = RowScope.of(conditions)
                rows = int(asked(scope, caches).totals["total_rows"])
                for when, taken in (
                    ("", milliseconds(partial(asked, scope, caches), repeats=repeats)),
                    (", first time", milliseconds(lambda: asked(scope, LookupCaches()), repeats=2)),  # noqa: B023
                ):
                    yield Figure(
                        f"scopes, {tenant.shape.name}",
                        f"by {by} and day, all, within {name}{when}",
                        taken,
                        "ms",
                        reference=whole,
                        note=f"{rows:,} rows; the reference has no scope",
                    )


def _asked(
    engine: QueryEngine, store: TenantStore, tenant: Generated, by: str, scope: RowScope | None, caches: LookupCaches
) -> Aggregate:
    selection = Selection(instants(tenant.shape.dates()[0], tenant.shape.last_day))
    with open_reader(engine, store, CancellationToken(), caches, scope=scope) as reader:
        return reader.aggregate(CHARGEBACKS, selection, Grouping((by,), "day", _UTC))
