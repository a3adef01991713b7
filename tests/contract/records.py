"""A client that reads whole lists, and all data of a tenant as plain records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx

from tests.contract.described import check_described
from tests.contract.endpoints import Endpoint
from tests.support.serving import wait_until

Record = dict[str, Any]


class Client(httpx.Client):
    """An HTTP client with helpers for tests; every response must conform to the OpenAPI document."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, event_hooks={"response": [check_described]})

    def answer(self, path: str, **parameters: Any) -> Any:
        """Return the JSON of a successful GET."""
        response = self.get(path, params=parameters or None)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        return response.json()

    def all_items(self, path: str, page_size: Any = 1000, **parameters: Any) -> list[Record]:
        """Return a whole list, read page by page."""
        items: list[Record] = []
        page = 1
        while True:
            answer = self.answer(path, page=page, page_size=page_size, **parameters)
            assert (answer["page"], answer["page_size"]) == (page, page_size)
            assert answer["pages"] == -(-answer["total"] // page_size)
            items += answer["items"]
            if page >= answer["pages"]:
                assert len(items) == answer["total"]
                return items
            assert len(answer["items"]) == page_size
            page += 1

    @staticmethod
    def tag_path(tenant: str, entity_type: str, entity_id: str, key: str | None = None) -> str:
        """Return the path of an entity's tags, or of one tag, with special characters of the id encoded."""
        tags = f"/api/v1/tenants/{tenant}/entities/{entity_type}/{quote(entity_id, safe='')}/tags"
        return tags if key is None else f"{tags}/{quote(key, safe='')}"


class Everything:
    """All data of a tenant, read from the unfiltered lists."""

    def __init__(self, client: Client, tenant: str) -> None:
        self._client = client
        self.base = f"/api/v1/tenants/{tenant}"

    def _list(self, name: str) -> list[Record]:
        return self._client.all_items(f"{self.base}/{name}")

    @cached_property
    def billing(self) -> list[Record]:
        """Billing lines."""
        return self._list("billing")

    @cached_property
    def chargebacks(self) -> list[Record]:
        """Chargeback rows."""
        return self._list("chargebacks")

    @cached_property
    def issues(self) -> list[Record]:
        """Allocation issues."""
        return self._list("chargebacks/allocation-issues")

    @cached_property
    def resources(self) -> list[Record]:
        """Resources."""
        return self._list("resources")

    @cached_property
    def identities(self) -> list[Record]:
        """Identities."""
        return self._list("identities")

    @cached_property
    def topics(self) -> list[Record]:
        """Topic rows."""
        return self._list("topic-attributions")

    @cached_property
    def ids(self) -> dict[str, str]:
        """Return values for paths: a dimension, a resource, and a finished simulation."""
        asked = {"policies": {}, "start_date": self.days[-1], "end_date": self.days[-1]}
        path: str = self._client.post(f"{self.base}/simulations", json=asked).headers["location"]
        wait_until(lambda: self._client.answer(path)["state"] == "done", 60)
        return {
            "dimension_id": str(self.chargebacks[0]["dimension_id"]),
            "entity_id": self.resources[0]["resource_id"],
            "simulation_id": path.rpartition("/")[2],
        }

    @cached_property
    def days(self) -> list[str]:
        """The UTC days that have chargebacks, ascending."""
        return sorted({row["timestamp"][:10] for row in self.chargebacks})


def when(record: Record, field: str = "timestamp") -> datetime:
    """Return the timestamp of a record."""
    return datetime.fromisoformat(record[field]).astimezone(UTC)


def total(records: Iterable[Record], field: str = "amount") -> Decimal:
    """Return the exact sum of a field."""
    return sum((Decimal(record[field]) for record in records), Decimal(0))


def shown(amount: Decimal) -> str:
    """Return an amount as the service writes it."""
    digits = f"{amount:f}"
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"


def key_of(row: Record) -> Record:
    """Return the parameters that explain a chargeback row."""
    metadata = row["metadata"]
    return {
        "date": row["timestamp"][:10],
        "line_id": metadata["line_id"],
        "identity_id": row["identity_id"],
        "portion": metadata["portion"],
    }


def topic_key_of(row: Record) -> Record:
    """Return the parameters that explain a topic row."""
    return {
        "date": row["timestamp"][:10],
        "line_id": row["metadata"]["line_id"],
        "topic_name": row["topic_name"],
    }


def statement_key_of(row: Record) -> Record:
    """Return the parameters of the statement for a row's identity."""
    return {"period": row["timestamp"][:7], "by": "identity_id", "value": row["identity_id"]}


def needed_of(endpoint: Endpoint, everything: Everything) -> Record:
    """Return the required parameters of an endpoint, with values of a row of the tenant where they refer to one."""
    names = dict(endpoint.needed)
    row = everything.chargebacks[0]
    key = topic_key_of(everything.topics[0]) if "topic_name" in names else key_of(row) | statement_key_of(row)
    # A PDF file of each identity takes a quarter of a minute; there are few teams.
    few = {"by": "tag:team"} if endpoint.path.endswith(".zip") else {}
    return {name: key.get(name, value) for name, value in names.items()} | few


def those(records: Iterable[Record], **fields: Any) -> list[Record]:
    """Return the records that have these values."""
    return [record for record in records if all(record[name] == value for name, value in fields.items())]


def typical(records: Iterable[Record], field: str) -> Any:
    """Return the most frequent value of a field."""
    values = [record[field] for record in records]
    return max(sorted(set(values) - {None}), key=values.count)


Filter = Callable[[Record], bool]
