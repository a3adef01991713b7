"""Writes ``docs/api.md`` and ``web/openapi.json``: ``python -m tests.contract.documentation``, from the root of the
repository.

The descriptions of endpoints and parameters come from the OpenAPI document, the responses from a new service for a
generated organisation. Long lists are shortened; «…» stands for the rest.

The types of the browser page are generated from the OpenAPI document: ``npm run types`` in ``web/``.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from tests.contract.deployment import DAYS, deployed
from tests.contract.described import DOCUMENT
from tests.contract.endpoints import BY_NAME, COMMON, TENANT
from tests.contract.examples import ADDRESS, AGO, EXAMPLES, PEOPLE, UNIT, Example
from tests.contract.records import key_of, topic_key_of
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.serving import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
REST = "…"

_HEAD = f"""\
# The REST API

All responses on this page are real: they come from `make demo SIZE=small DAYS={DAYS}`, which serves the tenant `acme`
at `{ADDRESS}`. Long lists are shortened ({REST}), and the clock stands at noon. Your ids, amounts and dates
depend on the day. You can copy the commands (they need curl 7.82 or newer, and some need jq). The OpenAPI document is
at `/openapi.json`, an interactive version at `/docs`.

This page is written by `python -m tests.contract.documentation`; tests compare it with the service.

## General rules

- **Amounts** are decimal strings, exact to twelve places, never floating-point numbers.
- **Timestamps** are UTC (`2026-01-31T00:00:00Z`), also those without an offset in a request. **Dates** are days.
- **A date range** is a range of days in the calendar of `timezone` (default UTC), both ends included. The default end
  is today; the default start is `lookback_days` of the tenant before the end. Daily lines have the timestamp 00:00 UTC:
  west of Greenwich they belong to the previous day, so reconcile with an invoice in UTC.
- **Ids in paths** are percent-encoded; ids of entities may also contain literal slashes.
- **Lists** are paginated: `items`, `total`, `page`, `page_size`, `pages`. Their order is fixed; pages do not change
  until a run changes the data. A page past the end is empty.
- **Unknown parameters are errors**, and all mistakes in a request are reported together. Every GET under `/api/v1`
  accepts the common parameters below, even if they have no effect there.
- **Bodies** are JSON with `Content-Type: application/json`. If you omit an optional body, no content type is needed.
- **HEAD** is supported wherever GET is, with the same headers and no body.
- **Filters** are the same everywhere: any column of the rows, `tag:<key>` or `category:<key>`. Repeat a filter to match
  any of several values. Those of tags and categories may also be separated by commas; in a value, `\\,` is a comma and
  `\\\\` a backslash. Different filters must all match. `not.` before the name excludes
  the rows that the filter matches. `UNTAGGED` matches rows without the tag, an empty `environment_id` rows without an
  environment. Unknown filters are errors; `…/topics` lists the filters that it ignores.
- **Periods** have names: `period=30d`, `month`, `last-month`, `quarter`, `2026-10`. All but the last are relative to
  the last calculated day, not to today.
- **ETag**: every GET about a tenant returns one, except files of rows. Send it back as `If-None-Match` to get 304
  without a body, and in most cases without a query, while nothing has changed. Responses of 1,000 bytes or more are
  compressed with gzip if `Accept-Encoding` allows it, except files of rows.
- **If-Match**: a change of a cost category, a budget or a note names the version that it replaces, by the ETag that GET
  returned, so that nobody's change is lost.
- **CSV**: append `.csv` to the path of a list or an aggregate, or send `Accept: text/csv`, to download everything that
  matches. The text is protected from being read as formulas, as in the [export](#export).
- **Errors** are returned as `application/problem+json` (RFC 9457):

%(problem)s

| status | meaning |
|---|---|
| 400 | an invalid parameter, body or filter; a body that is not JSON; a run outside mode `both`; topics not enabled |
| 401 | the request is not authenticated; never with `access.mode: none` |
| 403 | the caller lacks the right that the request needs; a change sent by a web page of another origin |
| 404 | the path, tenant, entity, tag or dimension does not exist |
| 405 | the path does not support the method |
| 409 | a run is in progress, or the tenant is suspended; the entity already has a tag with this key; a month cannot \
be closed, or a change would move amounts of closed months, see [closing](closing.md); a requested sum \
has more than 26 digits before the decimal point (18 in another currency), so an amount is wrong: see \
[troubleshooting](operations.md#troubleshooting) |
| 412 | someone else was faster: what `If-Match` names is no longer what is there |
| 413 | the body is larger than 8 MiB |
| 421 | the `Host` is not a name of the service, see `api.allowed_hosts` |
| 428 | a change of something that is there needs its ETag as `If-Match` |
| 501 | a PDF file is asked for, and the extra `pdf` is not installed |
| 503 | the tenant's storage is unavailable, or a required fact file is lost; `features.max_parallel_tenants` runs are \
already in progress: `Retry-After` says when to try again |
| 504 | the request took longer than `api.request_timeout_seconds`; its queries are cancelled |

A request to start a run outside mode `both` gets `400` with a `detail` that begins with
`No WorkflowRunner available - run in both mode`: use `chargeback run` on a host with the configuration, or start the
service with `--mode both`.

`GET /` redirects browsers to `/docs` and returns a list of addresses to other clients. `GET /metrics` (the service) and
`GET /metrics/chargebacks` (see [emitters](emitters.md)) return OpenMetrics text.
`GET {TENANT}/statement.html` and `GET {TENANT}/statement.pdf` take the parameters of
`…/statement` and return it as a page and as PDF, `GET {TENANT}/statements.zip`
takes those of `…/statements` and returns all of them as PDF in one ZIP file, see [statements](statements.md#over-http).
`GET {TENANT}/closings.jsonl` returns the receipts of closed months, see [closing](closing.md#receipts).

By default, requests are not authenticated: everyone who reaches the address may do everything. With `access.mode`
`proxy` or `jwt`, a request needs an identity, which comes from an authenticating proxy, a signed token or an access
token, and roles decide what it may see and do; see [who may see what](access.md).

CORS is disabled by default; with `api.enable_cors` and `api.cors_origins`, GET, POST, PATCH and DELETE are allowed.
Changes sent by web pages of any other origin are rejected; programs such as curl need no additional header.

## Common parameters

%(common)s
"""

#: A row that is split by usage.
_EXPLAINED = {
    "product_category": "KAFKA",
    "allocation_method": "usage_ratio",
    "not.identity_id": "UNALLOCATED",
    "page_size": "1",
}
#: A topic row that is split by bytes.
_ATTRIBUTED = {"attribution_method": "bytes_ratio", "page_size": "1"}
_ANY_FINDING = {"min_days": "1", "state": "all"}
_PREFACE = {
    "$(ago ": AGO,
    "{view_id}": f"VIEW=$(curl -s '{ADDRESS}{PEOPLE}/views' | jq -r '.items[0].id')",
    "topic-attributions/explain": f"TOPIC_KEY=$(curl -s '{ADDRESS}{PEOPLE}/topic-attributions?{urlencode(_ATTRIBUTED)}'"
    " | jq -r '.items[0].metadata.explain' | cut -d '?' -f 2)",
    "chargebacks/explain": f"KEY=$(curl -s '{ADDRESS}{PEOPLE}/chargebacks?{urlencode(_EXPLAINED)}'"
    " | jq -r '.items[0].metadata.explain' | cut -d '?' -f 2)",
    "$SIMULATION": f"SIMULATION=$(curl -s '{ADDRESS}{PEOPLE}/simulations' | jq -r '.items[0].id')",
    "$DIGEST": f"DIGEST=$(curl -s '{ADDRESS}{PEOPLE}/simulations/'$SIMULATION | jq -r '.answer.digest')",
    "$ETAG": f"ETAG=$(curl -sI '{ADDRESS}{UNIT}' | grep -i '^etag:' | tr -d '\\r' | cut -d ' ' -f 2)",
    "{finding_id}": f"FINDING=$(curl -s '{ADDRESS}{PEOPLE}/findings?{urlencode(_ANY_FINDING)}' | jq -r '.items[0].id')",
    "{dimension_id}": f"DIMENSION=$(curl -s '{ADDRESS}{PEOPLE}/chargebacks?page_size=1' | jq '.items[0].dimension_id')",
}


class Asker:
    """Sends examples to a service, for one tenant; fills in ``$DIMENSION`` and dates as a shell would on the day
    ``today``."""

    def __init__(self, client: httpx.Client, tenant: str, today: date = TODAY) -> None:
        self._client = client
        self._tenant = tenant
        self._today = today

    def _simulation(self) -> str:
        """Return the id of the newest simulation, once it is done."""
        path = f"/api/v1/tenants/{self._tenant}/simulations"
        wait_until(lambda: self._client.get(path).json()["items"][0]["state"] == "done", 60)
        newest: str = self._client.get(path).json()["items"][0]["id"]
        return newest

    def _digest(self) -> str:
        """Return the digest of the newest simulation."""
        path = f"/api/v1/tenants/{self._tenant}/simulations/{self._simulation()}"
        digest: str = self._client.get(path).json()["answer"]["digest"]
        return digest

    def ask(self, example: Example) -> httpx.Response:
        """Return the response to an example."""
        path = self._filled(example.path)
        body = None if example.body is None else json.loads(self._filled(json.dumps(example.body)))
        headers = {} if example.if_match is None else {"If-Match": self._filled(example.if_match)}
        return (
            self._client.request(example.method, path, json=body, headers=headers)
            if body
            else self._client.request(example.method, path, headers=headers)
        )

    def _filled(self, text: str) -> str:
        text = text.replace(PEOPLE, f"/api/v1/tenants/{self._tenant}")
        text = re.sub(r"\$\(ago (\d+)\)", self._days_ago, text)
        text = re.sub(r"\$\(ago (\d+) \| cut -c 1-7\)", self._month, text)
        if "$VIEW" in text:
            views = self._client.get(f"/api/v1/tenants/{self._tenant}/views").json()["items"]
            text = text.replace("$VIEW", views[0]["id"] if views else "1")
        if "$SIMULATION" in text:
            text = text.replace("$SIMULATION", self._simulation())
        if "$DIGEST" in text:
            text = text.replace("$DIGEST", self._digest())
        if "$ETAG" in text:
            unit = self._client.get(self._filled(UNIT))
            text = text.replace("$ETAG", unit.headers.get("etag", '"1"'))
        if "$TOPIC_KEY" in text:
            rows = self._client.get(f"/api/v1/tenants/{self._tenant}/topic-attributions", params=_ATTRIBUTED).json()
            text = text.replace("$TOPIC_KEY", urlencode(topic_key_of(rows["items"][0])))
        if "$KEY" in text:
            rows = self._client.get(f"/api/v1/tenants/{self._tenant}/chargebacks", params=_EXPLAINED).json()["items"]
            text = text.replace("$KEY", urlencode(key_of(rows[0])))
        if "$FINDING" in text:
            found = self._client.get(f"/api/v1/tenants/{self._tenant}/findings", params=_ANY_FINDING).json()
            text = text.replace("$FINDING", found["items"][0]["id"])
        if "$DIMENSION" in text:
            rows = self._client.get(f"/api/v1/tenants/{self._tenant}/chargebacks", params={"page_size": 1}).json()
            text = text.replace("$DIMENSION", str(rows["items"][0]["dimension_id"]))
        return text

    def _days_ago(self, match: re.Match[str]) -> str:
        return str(self._today - timedelta(days=int(match[1])))

    def _month(self, match: re.Match[str]) -> str:
        return self._days_ago(match)[: len("2026-01")]


def shortened(value: Any, most: int = 2) -> Any:
    """Return a JSON value with a limited number of entries in each list."""
    if isinstance(value, list):
        kept = [shortened(each, most) for each in value[:most]]
        return [*kept, REST] if len(value) > most else kept
    if isinstance(value, dict):
        return {name: shortened(each, most) for name, each in value.items()}
    return value


def rendered(response: httpx.Response) -> Iterator[str]:
    """Yield the lines that show the response on the page."""
    kind = response.headers.get("content-type", "")
    if "json" in kind:
        yield from ("```json", _json(shortened(response.json())), "```")
    elif kind.startswith("text/csv"):
        lines = response.text.split("\r\n")
        yield from ("```text", *lines[:3], *([REST] if len(lines) > 4 else []), "```")
    else:
        yield f"The response has no body: `{response.status_code} {response.reason_phrase}`."


def _json(value: Any, indent: str = "") -> str:
    """Return JSON with short values on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(flat) <= 100:
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        parts = [_json(each, inner) for each in value]
        return "[\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}]"
    parts = [f"{json.dumps(name)}: {_json(each, inner)}" for name, each in value.items()]
    return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}}}"


def _table(rows: list[tuple[str, str, str]], first: str) -> Iterator[str]:
    if rows:
        yield from (f"| {first} | default | meaning |", "|---|---|---|")
        yield from (f"| `{name}` | {default} | {meaning} |" for name, default, meaning in rows)
        yield ""


def parameters(operation: dict[str, Any], names: frozenset[str] | None) -> list[tuple[str, str, str]]:
    """Return name, default and meaning of query parameters: the common ones if ``names`` is given, else the others."""
    rows = []
    for parameter in operation.get("parameters", []):
        common = parameter["name"] in COMMON
        if parameter["in"] == "query" and common == (names is not None):
            rows.append((parameter["name"], _default(parameter["schema"]), _meaning(parameter, parameter["schema"])))
    return rows


def fields(document: dict[str, Any], operation: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, default and meaning of the fields of a body."""
    content = operation.get("requestBody", {}).get("content", {})
    if not content:
        return []
    schema = _resolved(document, content["application/json"]["schema"])
    required = schema.get("required", [])
    return [
        (name, "required" if name in required else _default(field), _meaning(field, _resolved(document, field)))
        for name, field in schema["properties"].items()
    ]


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    if isinstance(value, list):
        return ", ".join(f"`{each}`" for each in value)
    return "" if value in (None, {}) else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _meaning(described: dict[str, Any], schema: dict[str, Any]) -> str:
    words = [described.get("description") or schema.get("description", "")]
    for kind in [schema, *schema.get("anyOf", []), schema.get("items", {})]:
        if "enum" in kind and f"`{kind['enum'][0]}`" not in words[0]:
            words.append("One of " + ", ".join(f"`{each}`" for each in kind["enum"]) + ".")
        if kind.get("type") == "integer":
            words.append(
                f"At least {kind['minimum']}" + (f", at most {kind['maximum']}." if "maximum" in kind else ".")
            )
    return " ".join(word for word in words if word).replace("|", "\\|").replace("\n", " ")


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    named: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return named


def _section(document: dict[str, Any], example: Example, response: httpx.Response) -> Iterator[str]:
    method, _, path = example.endpoint.partition(" ")
    yield from (f"### {method} {path}", "")
    if BY_NAME[example.endpoint].is_file:
        yield from (f"The answer of `{method} {path.removesuffix('.csv')}` as a file; needs the right `export`.", "")
    else:
        operation = document["paths"][path][method.lower()]
        yield from (operation["description"].strip(), "")
        yield from _table(parameters(operation, None), "parameter")
        yield from _table(fields(document, operation), "field")
    preface = [text for part, text in _PREFACE.items() if part in path or part in example.command]
    yield from ("```console", *(f"$ {line}" for line in [*preface, example.command]), "```", "")
    if response.status_code not in (200, 204):
        yield from (f"`{response.status_code} {response.reason_phrase}`:", "")
    yield from rendered(response)
    yield ""


def page_of(document: dict[str, Any], wrong: httpx.Response, ask: Callable[[Example], httpx.Response]) -> str:
    """Return the whole page, ordered by subject. ``wrong`` is the response to an invalid request; ``ask`` returns those
    to examples."""
    billing = document["paths"]["/api/v1/tenants/{tenant_name}/billing"]["get"]
    head = {
        "problem": "\n".join(rendered(wrong)),
        "common": "\n".join(_table(parameters(billing, COMMON), "parameter")).strip(),
    }
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    chapters: dict[str, list[str]] = {operation["tags"][0]: [] for operation in operations}
    for example in EXAMPLES:
        if not example.is_shown:
            ask(example)
            continue
        method, _, _ = example.endpoint.partition(" ")
        (named,) = document["paths"][BY_NAME[example.endpoint].documented][method.lower()]["tags"]
        chapters[named] += _section(document, example, ask(example))
    text = "\n".join(f"## {named}\n\n" + "\n".join(lines) for named, lines in chapters.items() if lines)
    return steady(_HEAD % head + "\n" + text.strip() + "\n")


def steady(page: str) -> str:
    """Replace the parts of the page that differ each time it is written: real timestamps of the control database, which
    are the only ones with fractions of seconds, and the revision of sums, which depends on them."""
    page = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", f"{NOW:%Y-%m-%dT%H:%M:%SZ}", page)
    return re.sub(r'"revision": "[0-9a-f]{32}"', '"revision": "0123456789abcdef0123456789abcdef"', page)


def written(client: httpx.Client) -> str:
    """Return the whole page, from a service with ``acme``."""
    wrong = client.get(f"{PEOPLE}/billing", params={"page_size": 5000, "tyme": "zone"})
    return page_of(client.get("/openapi.json").json(), wrong, Asker(client, "acme").ask)


def document_text(document: dict[str, Any]) -> str:
    """Return the OpenAPI document as text that can be compared line by line."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Start a service with a fixed clock, and write the page and the document."""
    with (
        tempfile.TemporaryDirectory() as folder,
        deployed(Path(folder), ("acme",), clock=FixedClock()) as deployment,
        httpx.Client(base_url=deployment.address, timeout=60) as client,
    ):
        DOCUMENT.write_text(document_text(client.get("/openapi.json").json()), encoding="utf-8")
        PAGE.write_text(written(client), encoding="utf-8")
        wait_until(lambda: not client.get(f"{PEOPLE}/pipeline/status").json()["is_running"], 120)


if __name__ == "__main__":
    main()
