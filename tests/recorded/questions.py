"""The requests of a recording: created once from the content of the tenants, and stored with them.

So the requests do not depend on the responses of later code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx

from tests.recorded.content import CHANGE, MONTH
from tests.recorded.deployment import GROUPS, USER
from tests.recorded.organisations import RUNS

Json = dict[str, Any]
Params = Sequence[tuple[str, str]]

TENANT: Final = "/api/v1/tenants/{tenant_name}"
CSV: Final = {"Accept": "text/csv"}
#: Headers of callers; the one without a name uses the service that accepts everyone. ``$name`` stands for a token.
CALLERS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {},
    "admin": {USER: "admin@acme.example"},
    "reader": {USER: "reader@acme.example"},
    "exporter": {USER: "exporter@acme.example"},
    "identity": {USER: "identity@acme.example"},
    "team": {USER: "eve@acme.example", GROUPS: "team-payments,other"},
    "cluster": {USER: "cluster@acme.example"},
    "unit": {USER: "unit@acme.example"},
    "chain": {USER: "chain@acme.example"},
    "stranger": {USER: "mallory@acme.example", GROUPS: "others"},
    "anonymous": {},
    "token": {"Authorization": "Bearer $reader"},
    "ended": {"Authorization": "Bearer $ended"},
    "revoked": {"Authorization": "Bearer $revoked"},
}
AS_OF: Final = tuple(f"{instant:%Y-%m-%dT%H}:30:00Z" for instant in RUNS)
NOBODY: Final = "nobody"
#: Required parameters of some paths within a tenant, and paths of long lists.
REQUIRED: Final[Mapping[str, str]] = {"/chargebacks/diff": f"from_as_of={AS_OF[0]}"}
CHEAP: Final = {"/chargebacks", "/billing", "/topic-attributions", "/chargebacks/allocation-issues", "/usage"}


@dataclass(frozen=True)
class Question:
    """A request. The header ``If-None-Match: $ETAG`` stands for the ETag of the same request without it, and
    ``If-Match: $ETAG path`` for that of another path."""

    path: str
    method: str = "GET"
    caller: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def name(self) -> str:
        """Return the name that identifies the request."""
        more = [f"{name}: {value}" for name, value in self.headers.items()]
        more += [] if self.body is None else [json.dumps(self.body, ensure_ascii=False)]
        return " ".join([self.caller or "-", self.method, self.path, *more])

    def as_json(self) -> Json:
        """Return the fields for :meth:`from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Json) -> Question:
        """Create a question from stored fields."""
        return cls(**fields)


def path_of(template: str, tenant: str, params: Params = (), **parts: str) -> str:
    """Return a path with encoded parts and query."""
    encoded = {name: quote(value, safe="") for name, value in parts.items()}
    query = urlencode(list(params), safe=":/,@*")
    return template.format(tenant_name=tenant, **encoded) + (f"?{query}" if query else "")


def joined(template: str, tenant: str, *queries: str) -> str:
    """Return the path of a tenant with the non-empty parts of a query."""
    query = "&".join(filter(None, queries))
    return template.format(tenant_name=tenant) + (f"?{query}" if query else "")


class Known:
    """The content of a tenant."""

    def __init__(self, client: httpx.Client, tenant: str) -> None:
        self._client = client
        self.tenant = tenant
        self.rows = self.page("chargebacks", page_size=1000, start_date=CHANGE)
        self.topic_rows = self.page("topic-attributions", page_size=1000, start_date=CHANGE)
        self.lines = self.page("billing", page_size=200, start_date=CHANGE)
        self.resources = self.page("resources", page_size=1000)
        self.identities = self.page("identities", page_size=1000)
        self.findings = self.page("findings", page_size=20, min_days=1)
        self.nodes = self.get("graph", depth=5, top=6, period="month")["nodes"]

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON of a response."""
        response = self._client.get(f"/api/v1/tenants/{self.tenant}/{path}", params=params)
        return response.raise_for_status().json()

    def page(self, path: str, **params: Any) -> list[Json]:
        """Return a page of a list."""
        items: list[Json] = self.get(path, **params)["items"]
        return items

    def most(self, column: str, rows: Sequence[Json] | None = None) -> list[str]:
        """Return the values of a column by descending frequency."""
        values = [row[column] for row in (self.rows if rows is None else rows) if row[column]]
        return sorted(dict.fromkeys(values), key=lambda each: (-values.count(each), each))

    def values(self) -> dict[str, list[list[str]]]:
        """Return values of each parameter; each entry is one request with one or several values."""
        identities, resources = self.most("identity_id"), self.most("resource_id")
        environments = [each["resource_id"] for each in self.resources if each["resource_type"] == "environment"]
        clusters = self.most("cluster_resource_id", self.topic_rows)
        types, topics = self.most("product_type"), self.most("topic_name", self.topic_rows)
        teams = [each for each in self.get("tags/keys/team/values")["values"] if each]
        with_comma = [each for each in teams if "," in each or "\\" in each][:2]
        escaped = [each.replace("\\", "\\\\").replace(",", "\\,") for each in [*with_comma, *teams[:1]]]
        return {
            "identity_id": [identities[:1], identities[2:4], ["UNALLOCATED"], [NOBODY]],
            "resource_id": [resources[:1], resources[1:3]],
            "environment_id": [environments[:1], [""]],
            "env_id": [environments[:1], [""]],
            "cluster_id": [clusters[:1], ["", *clusters[1:2]]],
            "cluster_resource_id": [clusters[:1], clusters[1:3]],
            "topic_name": [topics[:1], topics[1:4]],
            "product_type": [types[:1], types[1:4], ["ODD_1"]],
            "product_category": [["KAFKA"], ["FLINK", "SUPPORT"]],
            "cost_type": [["usage"], ["shared"]],
            "allocation_method": [[each] for each in self.most("allocation_method")[:4]],
            "allocation_detail": [[each] for each in self.most("allocation_detail")[:3]],
            "attribution_method": [[each] for each in self.most("attribution_method", self.topic_rows)[:3]],
            "line_id": [[self.rows[0]["metadata"]["line_id"]]],
            "tag:<key>": [
                [f"tag:team={','.join(escaped)}"],
                ["tag:team=UNTAGGED"],
                ["tag:cost-center=4710"],
                ["tag:env=prod"],
                ["tag:env=dev", f"tag:team={escaped[-1]}"],
                ["tag:none=x"],
            ],
            "category:<key>": [
                *([f"category:business_unit={each}"] for each in ("orders", "retail", "leftover")),
                ["category:chain=a"],
                ["category:chain=shared,b"],
                ["category:none=x"],
                ["category:chain=a", "category:business_unit=infra"],
            ],
            "not.<filter>": [
                [f"not.identity_id={identities[0]}"],
                ["not.product_category=KAFKA"],
                ["not.tag:env=prod"],
                ["not.category:business_unit=orders"],
                ["not.environment_id="],
            ],
            "tag_key": [["team"], ["cost-center"]],
            "tag_value": [[*teams[:1]]],
            "period": [["7d"], ["month"], ["last-month"], ["quarter"], [MONTH]],
            "as_of": [[each] for each in AS_OF] + [["2026-04-06T08:30:00+02:00"], ["2026-01-01T00:00:00Z"]],
            "timezone": [["Europe/Berlin"], ["America/New_York"], ["Asia/Kathmandu"], ["Pacific/Kiritimati"]],
            "page": [["2"], ["999"]],
            "page_size": [["3"]],
            "limit": [["1"], ["3"]],
            "top": [["1"], ["3"]],
            "depth": [["0"], ["1"], ["4"]],
            "currency": [["USD"], ["EUR"], ["GBP"]],
            "compare": [["year"], ["none"], ["2026-03-01..2026-03-10"]],
            "by": [["product_category", "cost_type"], ["tag:team"], ["category:chain", "identity_id"], ["cluster_id"]],
            "series": [["identity_id"]],
            "include": [["issues,days,forecast,topics"], ["forecast"]],
            "focus": [[each["id"]] for each in self.nodes[1:20:4]] + [[self.nodes[-1]["id"].rpartition("/")[2]]],
            "min_amount": [["10.5"], ["-1000"]],
            "min_days": [["3"], ["30"]],
            "from_as_of": [[AS_OF[0]], [AS_OF[1]]],
            "q": [["ord"], ["SA-"], ["%2F"], ["المد"], [""]],
            "search": [["ord"], ["SA-"], ["<b>"]],
            "status": [["active"], ["deleted"]],
            "resource_type": [["kafka_cluster"], ["environment"]],
            "identity_type": [["service_account"], ["user"]],
            "measure": [["bytes_in"], ["retained_bytes", "bytes_out"]],
            "subject": [identities[:1], topics[:2]],
            "topic": [topics[:1]],
            "hash": [[row["metadata"]["policy"]] for row in self.rows[:1]],
            "what": [["tag.created"], ["category.changed"], ["run.requested"], ["statement.disputed"]],
            "who": [["api"], ["alice"], ["admin@acme.example"]],
            "version": [["1"], ["2"], ["9"]],
            "columns": [["ChargePeriodStart", "BilledCost", "x_CostCategoryChain"]],
            "split": [["topics"], ["none"]],
            "entity_type": [["resource"], ["identity"]],
            "date": [[CHANGE], ["2026-04-02"]],
            "portion": [["1"], ["2"]],
            "dry_run": [],
            "value": [],
            "format": [],
            "template": [],
            "start_date": [["2026-03-27"]],
            "end_date": [["2026-03-30"]],
            "from_start": [],
            "from_end": [],
            "to_start": [],
            "to_end": [],
            "active_at": [["2026-03-29T12:00:00Z"], ["2026-03-29T12:00:00+02:00"]],
            "period_start": [["2026-04-01T00:00:00Z"]],
            "period_end": [["2026-03-20T00:00:00Z"]],
        }
