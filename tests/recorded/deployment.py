"""The configurations of the recorded service, and the service itself, in this process with a real socket."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal
from unittest.mock import patch

import httpx
import yaml

from chargeback.api.app_factory import create_app_from
from chargeback.assistants.server import add_mcp
from chargeback.config import load_configuration
from chargeback.model.days import utc_now
from chargeback.pipeline.engine import Engine
from tests.recorded.organisations import POLICY
from tests.support.serving import served

#: Whether callers are distinguished: ``open`` accepts everyone, in mode ``both``; ``guarded`` trusts the headers of a
#: proxy, in mode ``api``.
Access = Literal["open", "guarded"]

#: Tenants and their ``lookback_days``. ``plain`` has no topics, those of ``wrong`` are invalid, ``empty`` never ran.
TENANTS: Final = {"small": 30, "usual": 46, "odd": 24, "scratch": 30, "plain": 30, "wrong": 30, "empty": 30}

USER: Final = "X-Forwarded-Email"
GROUPS: Final = "X-Forwarded-Groups"

_TEMPLATES: Final = {
    "sap.csv.j2": "Document,Account,Cost centre,Debit,Credit,Text\n{% for line in lines %}\n"
    "{{ number }},{{ line.account }},{{ line.gl.cost_center|default('') }},{{ line.debit }},{{ line.credit }},"
    "{{ line.text }}\n{% endfor %}\n",
    "net.json.j2": "[{% for line in lines %}{{ line.debit - line.credit }}{{ ',' if not loop.last }}{% endfor %}]",
    "book.xml.j2": "<book number={{ '\"' }}{{ number }}{{ '\"' }}>{% for line in lines %}<line>{{ line.text }}</line>"
    "{% endfor %}</book>\n",
    "wide.txt.j2": "{% for line in lines %}{{ line.text }}|{{ line.debit }}\n{% endfor %}",
    "wrong.txt.j2": "{{ lines[0].nothing.at_all }}",
}
_RATES: Final = {
    "EUR": {f"{month}": f"0.9{month[-2:]}1" for month in ("2026-01", "2026-02", "2026-03", "2026-04", "2025-12")},
    "GBP": {"2026-03": "0.77123456"},
    "JPY": {"2026-02": "151.2", "2026-03": "149.93", "2026-04": "150"},
}


def write_configurations(folder: Path, roles: list[dict[str, Any]]) -> None:
    """Write both configurations, with paths relative to ``folder``, and the journal templates."""
    journal = folder / "journal"
    journal.mkdir(exist_ok=True)
    for name, text in _TEMPLATES.items():
        (journal / name).write_text(text, encoding="utf-8")
    whole: dict[str, Any] = {
        "logging": {"level": "CRITICAL"},
        "mcp": {"enabled": True, "page_url": "https://chargeback.example.com/ui"},
        "api": {"request_timeout_seconds": 300},
        "tenants": {name: _tenant(name, days) for name, days in TENANTS.items()},
    }
    guarded = whole | {"access": {"mode": "proxy", "proxy": {"trusted": ["127.0.0.1"]}, "roles": roles}}
    for access, configuration in (("open", whole), ("guarded", guarded)):
        text = yaml.safe_dump(configuration, sort_keys=False, allow_unicode=True)
        (folder / f"{access}.yaml").write_text(text, encoding="utf-8")


def _tenant(name: str, days: int) -> dict[str, Any]:
    topics: dict[str, Any] = {"enabled": name != "plain"}
    if name == "wrong":
        topics["missing_metrics_behavior"] = "guess"
    settings: dict[str, Any] = {
        "ccloud_api": {"key": "KEY", "secret": "SECRET", "url": "http://127.0.0.1:9"},
        "metrics": {"type": "prometheus", "url": "http://127.0.0.1:9", "auth_type": "none"},
        "topic_attribution": topics,
        "allocation_policies": POLICY,
    }
    if name in {"small", "usual"}:
        settings["emitters"] = [{"type": "prometheus", "name": "grafana", "params": {}}]
    return {
        "ecosystem": "confluent_cloud",
        "tenant_id": "acme",
        "lookback_days": days,
        "currencies": _RATES,
        "storage": {"connection_string": f"sqlite:///{name}/acme.db"},
        "journal": {"templates": {each.partition(".")[0]: f"journal/{each}" for each in _TEMPLATES}},
        "focus": {"billing_account_name": "Acme, Streams"},
        "plugin_settings": settings,
    }


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hide this machine's user settings and state folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHARGEBACK", "CONFLUENT"))}
    with patch.dict(os.environ, kept | {"CHARGEBACK_STATE_DIR": str(folder / "state")}, clear=True):
        yield


@contextmanager
def opened(folder: Path, access: Access) -> Iterator[httpx.Client]:
    """Serve the tenants of ``folder``; yield a client, which addresses the service by a name without a port."""
    configuration = load_configuration(folder / f"{access}.yaml")
    engine = Engine(configuration, None, clock=utc_now) if access == "open" else None
    app = create_app_from(configuration, "both" if engine else "api", engine, utc_now)
    add_mcp(app, configuration.mcp)
    headers: Mapping[str, str] = {"Host": "localhost", "Accept-Encoding": "identity"}
    try:
        with (
            served(app) as address,
            httpx.Client(base_url=address, headers=headers, timeout=330, trust_env=False) as client,
        ):
            yield client
    finally:
        if engine is not None:
            engine.stop()
