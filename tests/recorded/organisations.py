"""The tenants of a recording: generated organisations whose bills were calculated in several runs.

Between the runs, bills change, days are recalculated with another policy, and metrics are missing, so that days have
several revisions, and some days are pending or failed.
"""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import yaml

from chargeback.demo.inventory import DemoInventory, ServiceAccount, Topic
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.demo.shapes import Json
from chargeback.demo.sizes import Size
from chargeback.model.days import utc_now
from chargeback.model.run_request import RunRequest
from tests.recorded.clock import NOW, stopped_at
from tests.support.deployments import Deployment

TODAY: Final = NOW.date()
SEED: Final = 7
#: The instants of the runs, oldest first.
RUNS: Final = tuple(NOW - timedelta(hours=hours) for hours in (102, 54, 11, 3))
#: The port of the provider, which appears in errors of runs.
PORT: Final = 38617
#: The policy of a product type from the third run on.
POLICY: Final = {
    "KAFKA_STORAGE": {"portions": [{"share": "1", "try": ["even(active)", "even(period)", "unallocated"]}]}
}
#: The days that are recalculated with that policy.
RECALCULATED: Final = (TODAY - timedelta(days=15), TODAY - timedelta(days=12))

#: Unusual names as users and other programs choose them.
ODD_NAMES: Final = (
    'Orders, "EMEA"; it\'s',
    '=HYPERLINK("http://evil.example","click")',
    "فريق المدفوعات",
    "日本語チーム 🚀",
    "100%2Fpercent & <b>bold</b>",
    "a very long name " * 13,
    "Twin",
    "twin",
    "+49 30/1234",
    "-leading",
    "@SUM(A1)",
    "tab\tand\nnewline",
    "' OR '1'='1",
    "${jndi:x} {{ template }}",
    "i\u0307stanbul straße ǅ",
    "a\\,b",
)
ODD_IDENTITIES: Final = (
    "sa-Twin",
    "sa-twin",
    "sa-a/b",
    "sa-%2F",
    "=1+1",
    "sa-עברית",
    'sa-"quoted", comma',
    "sa-" + "x" * 240,
)
ODD_TOPICS: Final = ("Orders.v1", "orders.v1", "=topic", "sales,eu", "50%2Foff", "t" * 249, "данные.v1", 'say "hi"')


def calculate_all(folder: Path) -> None:
    """Create the storages below ``folder``, one folder for each tenant."""
    calculate(folder / "small", "small", 30)
    calculate(folder / "usual", "usual", 46)
    generate = Organisation.generate
    with patch.object(Organisation, "generate", lambda spec: rename(generate(spec))):
        calculate(folder / "odd", "small", 24)


def calculate(folder: Path, size: Size, days: int) -> None:
    """Run a tenant several times, in this process."""
    begun = RUNS[0].date()
    spec = DemoSpec(begun, SEED, size, days - (TODAY - begun).days, burst=TODAY - timedelta(days=16))
    with DemoServer(Organisation.generate(spec), port=PORT) as server:
        deployment = Deployment.within(server, folder)
        deployment.clock = utc_now
        _configure(deployment, lookback_days=days)
        _run(deployment, RUNS[0])
        server.changes.advance((RUNS[1].date() - begun).days)
        correct_bills(server)
        _run(deployment, RUNS[1])
        server.changes.advance((TODAY - RUNS[1].date()).days)
        _configure(deployment, policies=POLICY)
        _run(deployment, RUNS[2], RunRequest(*RECALCULATED, recalculate=True))
        spoil_bill(server)
        deployment.lose_metrics()
        _run(deployment, RUNS[3])
        deployment.store.close()
        deployment.config_file.unlink()


def correct_bills(server: DemoServer) -> None:
    """Change some days of the bill: higher, lower, a refund, and unusual lines."""
    changes = server.changes
    more, less, refund = (TODAY - timedelta(days=ago) for ago in (11, 14, 18))
    changes.edit_costs(more, lambda rows: [row | {"amount": row["amount"] * 2} for row in rows])
    changes.edit_costs(less, lambda rows: rows[: len(rows) // 2])
    changes.add_cost(refund, changes.cost_rows(refund)[0] | {"id": "refund", "amount": Decimal("-12.3456789012")})
    line = changes.cost_rows(more)[0]
    for number, name in enumerate(ODD_NAMES[:5]):
        changes.add_cost(more, line | {"id": f"odd-{number}", "line_type": f"ODD_{number}", "description": name})


def spoil_bill(server: DemoServer) -> None:
    """Add a line that cannot be parsed to a day of the bill."""
    day = TODAY - timedelta(days=9)

    def _spoilt(rows: list[Json]) -> list[Json]:
        return [*rows, rows[0] | {"id": "spoilt", "amount": "twelve"}]

    server.changes.edit_costs(day, _spoilt)


def rename(organisation: Organisation) -> Organisation:
    """Replace ids of identities and topics, and names of other objects."""
    inventory = organisation.inventory
    ids = dict(zip((each.id for each in inventory.service_accounts), ODD_IDENTITIES, strict=False))
    for name, held in ((field.name, getattr(inventory, field.name)) for field in fields(DemoInventory)):
        if isinstance(held, list):
            held[:] = [_renamed(each, ids, name, number) for number, each in enumerate(held)]
        elif isinstance(held, dict):
            for listed in held.values():
                listed[:] = [_renamed(each, ids, name, number) for number, each in enumerate(listed)]
    return Organisation(organisation.spec, inventory)


def _renamed(each: Any, ids: dict[str, str], kind: str, number: int) -> Any:
    if isinstance(each, str):
        return each
    changed = {name: ids[value] for name, value in vars(each).items() if isinstance(value, str) and value in ids}
    if isinstance(each, Topic) and 2 <= number < 2 + len(ODD_TOPICS):
        changed["name"] = ODD_TOPICS[number - 2]
    elif isinstance(each, ServiceAccount) or kind in {"environments", "clusters", "connectors", "users"}:
        changed["name"] = ODD_NAMES[number % len(ODD_NAMES)]
    return replace(each, **changed)


def _configure(deployment: Deployment, *, lookback_days: int | None = None, policies: Any = None) -> None:
    """Change the configuration for the following runs."""
    written = yaml.safe_load(deployment.config_file.read_text())
    tenant = written["tenants"]["acme"]
    tenant["lookback_days"] = lookback_days or tenant["lookback_days"]
    if policies is not None:
        tenant["plugin_settings"]["allocation_policies"] = policies
    deployment.config_file.write_text(yaml.safe_dump(written))
    deployment.reopen()


def _run(deployment: Deployment, at: datetime, request: RunRequest | None = None) -> None:
    with stopped_at(at):
        result = deployment.run(request)
    print(f"{deployment.config_file.parent.name}: run of {at:%Y-%m-%d %H:%M}: {result.outcome}")
