"""The page in a real browser with the real service and the demo's data: figures, keys, changes, and behind nginx."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.cli.demo_story import tag_teams
from chargeback.demo.organisation import DemoSpec
from chargeback.page.serve import BUILT
from chargeback.store.control.days import DayDataset, mark_due, read_days
from chargeback.store.control.runs import suspend
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, read_day
from chargeback.store.tenant import TenantStore, open_store
from tests.contract.deployment import CUTOFF_DAYS, deployed
from tests.page.test_web import CHROMIUM, artifacts, node
from tests.security.test_tls import certificate
from tests.support.facts import replace_day
from tests.support.nginx import PASSWORD, example_below_a_path, proxied

__all__ = ["certificate"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("process")]
PREFIX = "/apps/chargeback"
#: The calculated days are in two months, and so are the last five of them.
TODAY = date(2026, 2, 10)
#: The number of calculated days of the tenant whose storage is damaged.
SPOILED_DAYS = 6


def spoil(store: TenantStore) -> None:
    """Suspend a tenant, increase the charges of one day by the smallest amount, and mark the last day as pending."""
    with store.control.write() as connection:
        days = [state.tracking_date for state in read_days(connection) if state.chargebacks.is_current]
        suspend(connection, "The bill of this tenant could not be fetched.")
        mark_due(connection, DayDataset.CHARGEBACKS, days[-1:])
    rows = read_day(store.facts, CHARGEBACKS_TABLE, days[-3])
    first, *others = rows["amount"].to_pylist()
    field = rows.schema.field("amount")
    amounts = pa.array([first + Decimal("0.000000000001"), *others], field.type)
    changed = rows.set_column(rows.schema.get_field_index("amount"), field, amounts)
    replace_day(store.facts, CHARGEBACKS_TABLE, days[-3], changed)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of the service and of its upstream for nginx: acme has costs and tags, plain never ran."""
    assert CHROMIUM is not None, "`make test` installs Debian's chromium-headless-shell"
    assert (BUILT / "index.html").exists(), "`make page` builds the page"
    folder = tmp_path_factory.mktemp("service")
    lookbacks = {"spoiled": CUTOFF_DAYS + SPOILED_DAYS}
    with deployed(folder, ("acme", "spoiled", "plain"), today=TODAY, lookbacks=lookbacks) as deployment:
        tenants = deployment.configuration.tenants
        tag_teams(tenants["acme"], DemoSpec(TODAY).seed)
        with closing(open_store(tenants["spoiled"])) as store:
            spoil(store)
        with deployment.served(mode="both", path_prefix=PREFIX) as address:
            yield {
                "BASE": f"{deployment.address}/ui/",
                "UPSTREAM": address,
                "CHROMIUM": CHROMIUM,
                "ARTIFACTS": artifacts(),
            }


@pytest.mark.parametrize("file", ["figures", "keyboard", "changes", "origins", "monthend", "policies", "budgets"])
def test_the_page_over_the_service(places: dict[str, str], file: str) -> None:
    """The page shows the figures of the API and of files, works with the keyboard, and saves changes."""
    node("--test", f"tests/browser/{file}.test.ts", **places)


def test_the_page_behind_a_proxy(
    places: dict[str, str], certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The page works below a path of nginx, with the users of the example."""
    with proxied(tmp_path_factory.mktemp("nginx"), places["UPSTREAM"], certificate, example_below_a_path()) as proxy:
        where = f"https://127.0.0.1:{proxy.port}{PREFIX}/ui/"
        node("--test", "tests/browser/proxy.test.ts", **places, PROXY=where, PASSWORD=PASSWORD)
