"""What users add to calculated tenants: tags, cost categories, views, snoozes, replies and tokens.

Everything is written through the API and the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx

from chargeback.cli.demo_story import apply_demo_categories, tag_teams
from chargeback.config import load_configuration
from tests.cli.conftest import called
from tests.recorded.clock import NOW, stopped_at
from tests.recorded.deployment import opened
from tests.recorded.organisations import ODD_NAMES, SEED

#: A day within the data of all tenants, on which tags and rules change.
CHANGE: Final = "2026-03-28"
MONTH: Final = "2026-03"

Json = dict[str, Any]


def add_content(folder: Path) -> dict[str, str]:
    """Write the content of the tenants with rows; return the access tokens by name."""
    configuration = load_configuration(folder / "open.yaml")
    for name in ("small", "usual"):
        with stopped_at(NOW - timedelta(hours=2)):
            tag_teams(configuration.tenants[name], SEED)
            apply_demo_categories(configuration.tenants[name], SEED)
    for name in ("small", "usual", "odd"):
        with stopped_at(NOW - timedelta(hours=2)), opened(folder, "open") as client:
            writer = _Writer(client, name)
            writer.add_tags()
            writer.add_categories()
            writer.add_views()
        with stopped_at(NOW - timedelta(hours=1)), opened(folder, "open") as client:
            writer = _Writer(client, name)
            writer.change_categories()
            writer.add_snoozes()
            writer.add_replies()
    return dict(_tokens(folder))


class _Writer:
    """Writes the content of one tenant."""

    def __init__(self, client: httpx.Client, tenant: str) -> None:
        self._client = client
        self._base = f"/api/v1/tenants/{tenant}"
        self._is_odd = tenant == "odd"

    def _send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        response = self._client.request(method, self._base + path, json=body, headers=headers)
        if response.is_error:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text}")
        return response.json() if response.content else None

    def _values(self, column: str, **filters: str) -> list[str]:
        """Return the values of a column, by descending cost."""
        params = {"group_by": column, "time_bucket": "all", "period": "quarter", **filters}
        found = self._client.get(f"{self._base}/chargebacks/aggregate", params=params).json()["buckets"]
        return [each["dimensions"][column] for each in sorted(found, key=lambda each: -float(each["total_amount"]))]

    def _topics(self) -> list[str]:
        params = {"group_by": ["cluster_resource_id", "topic_name"], "time_bucket": "all", "period": "quarter"}
        found = self._client.get(f"{self._base}/topic-attributions/aggregate", params=params).json()["buckets"]
        names = [":topic:".join(each["dimensions"].values()) for each in found]
        return [name for name in names if "__UNATTRIBUTED__" not in name]

    def add_tags(self) -> None:
        """Tag identities, resources and topics; some tags change on a day."""
        identities, resources, topics = self._values("identity_id"), self._values("resource_id"), self._topics()
        items: list[Json] = []
        if self._is_odd:
            teams = [*ODD_NAMES, "payments", "orders", "Payments"]
            items += [_tag("identity", each, "team", teams[n % len(teams)][:255]) for n, each in enumerate(identities)]
        dated = {"valid_to": CHANGE}, {"valid_from": CHANGE}
        for number, identity in enumerate(identities[:6]):
            items += [
                _tag("identity", identity, "cost-center", f"47{number}{place}") | period
                for place, period in enumerate(dated)
            ]
        items += [_tag("identity", each, "only", "few") | {"valid_from": "2026-04-01"} for each in identities[3:5]]
        items += [_tag("resource", each, "env", ("prod", "dev")[n % 2]) for n, each in enumerate(resources[:9])]
        items += [_tag("resource", each, "team", "platform") for each in resources[4:7]]
        items += [_tag("resource", each, "owner", ODD_NAMES[n % 6][:255]) for n, each in enumerate(topics[::3])]
        items += [_tag("identity", "UNALLOCATED", "a.b:c-d_e", "x")]
        self._send("POST", "/tags/bulk", {"items": items, "created_by": "alice"})

    def add_categories(self) -> None:
        """Add a category with every kind of rule, one whose values reallocate their cost, and one that is deleted."""
        resources = self._values("resource_id")
        self._put("business_unit", _business_unit(self._values("identity_id"), resources, self._is_odd), "CHG-1")
        self._put("chain", _chain(resources), "CHG-2")
        self._put("gone", {"default": "nowhere", "rules": []}, "CHG-3")
        if self._is_odd:
            self._put("cost_center", _of_odd_names(), "CHG-4")
        self._send("DELETE", "/cost-categories/gone?reason=unused", **{"If-Match": self._etag("gone")})

    def change_categories(self) -> None:
        """Replace the rules of a category from a file, and change another category."""
        resources = self._values("resource_id")
        csv = f"entity_type,entity_id,value,percent,valid_from,valid_to\nresource,{resources[2]},infra,100,{CHANGE},\n"
        self._send(
            "PUT",
            "/cost-categories/business_unit/rules.csv",
            {"csv": csv, "reason": "from finance"},
            **{"If-Match": self._etag("business_unit")},
        )
        document = _chain(resources)
        document["values"]["shared"]["name"] = "Shared by all"
        self._put("chain", document, "CHG-5", **{"If-Match": self._etag("chain")})

    def _put(self, key: str, document: Json, reason: str, **headers: str) -> None:
        self._send("PUT", f"/cost-categories/{key}", {"document": document, "reason": reason}, **headers)

    def _etag(self, key: str) -> str:
        return str(self._client.get(f"{self._base}/cost-categories/{key}").headers["etag"])

    def add_views(self) -> None:
        """Store views, one of them with an unusual name."""
        for name, query in (("Payments", "period=30d&tag:team=payments"), (ODD_NAMES[0], "period=month"), ("z", "")):
            self._send("POST", "/views", {"name": name, "page": "costs", "query": query, "created_by": "bob"})

    def add_snoozes(self) -> None:
        """Snooze some findings."""
        found = self._client.get(f"{self._base}/findings", params={"min_days": 1}).json()["items"]
        for each, until in zip(found[1:6:2], ("2026-05-01", None, "2026-04-11"), strict=False):
            body = {"reason": "Kept, for the audit", "until": until, "created_by": "carol"}
            self._send("PUT", f"/findings/{each['id']}/snooze", body)

    def add_replies(self) -> None:
        """Acknowledge and dispute statements."""
        for by in ("identity_id", "category:business_unit", "tag:team"):
            found = self._client.get(f"{self._base}/statements", params={"period": MONTH, "by": by}).json()
            for each, said in zip(found["items"], ("acknowledge", "dispute", "acknowledge"), strict=False):
                params = httpx.QueryParams({"period": MONTH, "by": by, "value": each["recipient"]["value"]})
                body = {"note": f"{said} <b>{ODD_NAMES[2]}</b>", "created_by": "dave"}
                self._send("POST", f"/statement/{said}?{params}", body)


def _tag(entity_type: str, entity_id: str, key: str, value: str) -> Json:
    return {"entity_type": entity_type, "entity_id": entity_id, "tag_key": key, "tag_value": value}


def _business_unit(identities: Sequence[str], resources: Sequence[str], is_odd: bool) -> Json:
    names: Mapping[str, str] = {
        "retail": ODD_NAMES[0] if is_odd else "Retail",
        "orders": ODD_NAMES[2] if is_odd else "Orders",
        "infra": ODD_NAMES[1] if is_odd else "Infrastructure",
    }
    return {
        "values": {
            "retail": {"name": names["retail"], "gl": {"account": "54100", "company_code": "=1"}},
            "orders": {"name": names["orders"], "parent": "retail", "gl": {"account": "54200", "cost_center": "CC,1"}},
            "infra": {"name": names["infra"], "gl": {"account": "54300"}, "contacts": ["infra@acme.example"]},
            "ended": {"name": "Ended", "parent": "infra", "valid_to": CHANGE},
        },
        "default": "leftover",
        "rules": [
            {"id": "organisation", "match": {"product_type": ["SUPPORT*", "PROMO_CREDIT"]}, "assign": "infra"},
            {"id": "splitting", "match": {"resource": resources[0]}, "split": {"orders": "33.3", "infra": "66.7"}},
            {"id": "ended", "match": {"resource": resources[1]}, "assign": "ended"},
            {"id": "after", "match": {"resource": resources[1]}, "assign": "retail", "valid_from": CHANGE},
            {"id": "some", "match": {"identity": list(identities[1:4])}, "assign": "orders", "valid_to": "2026-04-02"},
            {"id": "topics", "match": {"topic": {"prefix": ["payments.", "Orders"]}}, "assign": "orders"},
            {"id": "names", "match": {"display_name": {"regex": "^(?P<team>[a-z]+)-[a-z]+-"}}, "assign": "${team}"},
            {"id": "tags", "match": {"tag": {"key": "env"}}, "assign": {"from_tag": "env"}},
        ],
        "share": [{"from": "infra", "to": "*", "by": "even"}],
    }


def _chain(resources: Sequence[str]) -> Json:
    return {
        "values": {name: {"name": name.title()} for name in ("shared", "platform", "a", "b", "c")},
        "rules": [
            {"id": "nobody", "match": {"identity": "UNALLOCATED"}, "assign": "shared"},
            {"id": "first", "match": {"resource": list(resources[:2])}, "assign": "platform"},
            {"id": "second", "match": {"resource": list(resources[2:4])}, "split": {"a": "60", "b": "40"}},
            {"id": "rest", "match": {"identity": {"glob": "*"}}, "assign": "c"},
        ],
        "share": [
            {"from": "shared", "to": "*", "by": "usage(bytes_in)"},
            {"from": "platform", "by": {"fixed": {"a": "12.5", "b": "87.5"}}},
            {"from": "c", "to": ["a", "b"], "by": "proportional"},
        ],
    }


def _of_odd_names() -> Json:
    return {
        "rules": [
            {"id": "twin", "match": {"identity": ["sa-Twin", "=1+1"]}, "assign": "twins"},
            {"id": "teams", "match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}},
        ]
    }


def _tokens(folder: Path) -> Iterator[tuple[str, str]]:
    """Create tokens: a valid one, an expired one, and a revoked one."""
    file = str(folder / "open.yaml")
    for name, expires, hours in (("reader", "never", 2), ("ended", "12h", 30), ("revoked", "90d", 2)):
        words = ["token", "create", "--config", file, "--tenant", "small", "--name", name, "--expires", expires]
        more = ["--allow", "read,export", "--scope", "category:business_unit=orders,retail"]
        with stopped_at(NOW - timedelta(hours=hours)):
            said = called(folder, *words, *more)
        assert said.returncode == 0, said.stderr
        yield name, said.stdout.strip()
    with stopped_at(NOW - timedelta(hours=1)):
        called(folder, "token", "revoke", "--config", file, "--tenant", "small", "revoked")
