"""A configuration of the service for the tenant ``acme``, over a served demo organisation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

CUTOFF_DAYS = 5
MAX_LOOKBACK_DAYS = 364


@dataclass(frozen=True)
class FlinkAccess:
    """How to reach the statements of one Flink region: ``region_id`` without the cloud (``us-east-1``)."""

    region_id: str
    key: str
    secret: str
    url: str


@dataclass(frozen=True)
class ServerInfo:
    """The address and credentials of a served demo organisation. The credentials are invented and valid only there."""

    url: str
    prometheus_url: str
    key: str
    secret: str
    flink: tuple[FlinkAccess, ...]
    days: int
    today: str

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ServerInfo:
        """Parse the output of :meth:`to_json`."""
        fields: dict[str, Any] = json.loads(text)
        return cls(**{**fields, "flink": tuple(FlinkAccess(**access) for access in fields["flink"])})


def _rates(today: date, days: int) -> dict[str, str]:
    """Return an invented rate for each month of the demo, and of as many days before it, for comparisons."""
    months = {f"{today - timedelta(days=ago):%Y-%m}" for ago in range(2 * days)}
    return {month: f"0.{9000 + 13 * int(month[-2:])}" for month in sorted(months)}


def _shadow(info: ServerInfo) -> dict[str, Any]:
    """Return possible future policies: the base fee of clusters is shared by all active identities."""
    begins = date.fromisoformat(info.today) - timedelta(days=info.days)
    portions = [{"share": "1", "try": ["even(active)", "even(period)", "unallocated"]}]
    return {"start_date": begins.isoformat(), "policies": {"KAFKA_NUM_CKUS": {"portions": portions}}}


def _contract(info: ServerInfo, billed: Decimal) -> dict[str, Any]:
    """Return a contract that began with the demo and ends soon."""
    today = date.fromisoformat(info.today)
    amount = (billed / Decimal("0.61")).quantize(Decimal(1))
    return {
        "id": "confluent",
        "issuer": "Confluent",
        "start_date": today - timedelta(days=info.days),
        "end_date": today + timedelta(days=45),
        "commitments": [{"id": "spend", "amount": f"{amount}", "interval": "term"}],
    }


def demo_configuration(
    info: ServerInfo,
    data_dir: Path,
    *,
    port: int = 8080,
    topic_attribution: bool = True,
    connection_string: str | None = None,
    facts_path: Path | None = None,
    shadow: bool = False,
    billed: Decimal | None = None,
) -> str:
    """Return the YAML of a service with one tenant, ``acme``.

    Its data is in ``data_dir`` (both SQLite and the facts) unless ``connection_string`` and ``facts_path`` say
    otherwise. ``lookback_days`` covers the days of the demo, 6 to 364 of them. With ``shadow``, the days are calculated
    by other policies as well. ``billed`` is what the days of the demo cost that can be calculated: 61 % of what a
    contract commits to.
    """
    storage = {
        "connection_string": connection_string or f"sqlite:///{data_dir / 'acme.db'}",
        "facts_path": None if facts_path is None else str(facts_path),
    }
    settings = {
        "min_refresh_gap_seconds": 0,
        # The demo has higher limits than the provider.
        "ccloud_api": {"key": info.key, "secret": info.secret, "url": info.url, "requests_per_second": 1000},
        "billing_api": {"requests_per_second": 1000},
        "flink": [asdict(access) for access in info.flink],
        "metrics": {"type": "prometheus", "url": info.prometheus_url, "auth_type": "none"},
        "topic_attribution": {"enabled": topic_attribution},
    }
    tenant = {
        "ecosystem": "confluent_cloud",
        "tenant_id": "acme",
        "lookback_days": max(CUTOFF_DAYS + 1, min(info.days, MAX_LOOKBACK_DAYS)),
        "cutoff_days": CUTOFF_DAYS,
        "currencies": {"EUR": _rates(date.fromisoformat(info.today), info.days)},
        "storage": storage,
        **({"shadow_policies": {"next": _shadow(info)}} if shadow else {}),
        **({"contracts": [_contract(info, billed)]} if billed else {}),
        "plugin_settings": settings,
    }
    whole = {"api": {"host": "127.0.0.1", "port": port}, "tenants": {"acme": tenant}}
    return yaml.safe_dump(whole, sort_keys=False)
