"""The contract, the routes, the OpenAPI document and ``docs/api.md`` name the same endpoints and parameters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from chargeback.api.app import create_app
from chargeback.api.services import Services
from tests.contract import shapes
from tests.contract.documentation import DOCUMENT, PAGE, REST, Asker, document_text, fields, parameters, written
from tests.contract.endpoints import BY_NAME, COMMON, ENDPOINTS, TENANT, Endpoint
from tests.contract.examples import EXAMPLES, Example
from tests.contract.records import Client
from tests.support.serving import wait_until

#: Endpoints whose answers are no JSON and no CSV; a page of their own describes them.
ELSEWHERE = {"GET /metrics/chargebacks", f"GET {TENANT}/statement.html", f"GET {TENANT}/statement.pdf"}


@pytest.fixture(scope="module")
def document(client: Client) -> dict[str, Any]:
    """The OpenAPI document as it is served."""
    answer: dict[str, Any] = client.answer("/openapi.json")
    return answer


def operation_of(document: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    """What the document says of an endpoint."""
    operation: dict[str, Any] = document["paths"][endpoint.path][endpoint.method.lower()]
    return operation


def test_routes_are_those_of_the_contract() -> None:
    """No endpoint is missing, and none is there that the contract does not know."""
    app = create_app(Services("0", "both"))
    found = set()
    for template, operations in app.openapi()["paths"].items():
        found |= {f"{method.upper()} {template}" for method in operations}
    assert found == BY_NAME.keys()
    hidden = {route.path for route in app.routes if isinstance(route, APIRoute) and not route.include_in_schema}
    assert not hidden


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_openapi_document(document: dict[str, Any], endpoint: Endpoint) -> None:
    """It names exactly the parameters, the fields of the body, and the success of the contract."""
    operation = operation_of(document, endpoint)
    queries = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
    assert queries == endpoint.parameters
    assert {name for name, _, _ in fields(document, operation)} == endpoint.body
    in_path = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", endpoint.path))
    successes = {status for status in operation["responses"] if status.startswith("2")}
    assert successes == {str(each) for each in (endpoint.success, endpoint.other_success) if each is not None}


def test_the_browser_page_knows_this_document(document: dict[str, Any]) -> None:
    """The types of the page are made of the document as it is served; `python -m tests.contract.documentation` writes
    it, and `npm run types` in `web/` the types."""
    assert document_text(document) == DOCUMENT.read_text(encoding="utf-8")


def test_every_parameter_is_described(document: dict[str, Any]) -> None:
    """A person can tell from the document what each parameter and field means."""
    for endpoint in ENDPOINTS:
        operation = operation_of(document, endpoint)
        for name, _, meaning in [
            *parameters(operation, None),
            *parameters(operation, COMMON),
            *fields(document, operation),
        ]:
            assert meaning, f"{endpoint.name}: {name}"


@pytest.fixture(scope="module")
def page() -> str:
    """The text of the page."""
    return PAGE.read_text(encoding="utf-8")


def sections(page: str) -> dict[str, str]:
    """Endpoint → its section of the page."""
    parts = re.split(r"^### (.+)$", page, flags=re.MULTILINE)
    return {name: text.partition("\n## ")[0] for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_endpoint_is_on_the_page(page: str) -> None:
    """No endpoint is missing, none is there that does not exist."""
    assert sections(page).keys() | ELSEWHERE == BY_NAME.keys()
    assert {example.endpoint for example in EXAMPLES} == sections(page).keys()
    assert all(name in page for name in ELSEWHERE)


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if each.name not in ELSEWHERE], ids=lambda each: each.name
)
def test_every_parameter_is_on_the_page(page: str, endpoint: Endpoint) -> None:
    """The table of an endpoint names exactly its own parameters or fields; the common ones have one table."""
    text = sections(page)[endpoint.name]
    named = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))
    assert named == endpoint.query | endpoint.body
    common = page.partition("## Common parameters")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", common, flags=re.MULTILINE)) == COMMON


def without_rest(value: Any) -> Any:
    """A documented answer without what stands for the rest of a list."""
    if isinstance(value, list):
        return [without_rest(each) for each in value if each != REST]
    if isinstance(value, dict):
        return {name: without_rest(each) for name, each in value.items()}
    return value


def test_documented_answers_are_what_is_answered_now(scratch: Client, page: str) -> None:
    """Each documented request is on the page and succeeds; the documented answer and the one of now have one shape."""
    asker, documented = Asker(scratch, "scratch"), sections(page)
    for example in EXAMPLES:
        text = documented[example.endpoint]
        assert f"$ {example.command}\n" in text, example.endpoint
        response = asker.ask(example)
        endpoint = BY_NAME[example.endpoint]
        assert response.status_code in (endpoint.success, endpoint.other_success), f"{example.command}: {response.text}"
        check_answer(example, text, response.text)
    wait_until(lambda: not scratch.answer("/api/v1/tenants/scratch/pipeline/status")["is_running"], 120)


def check_answer(example: Example, section: str, now: str) -> None:
    """The answer on the page and the answer of now are of one kind."""
    blocks = re.findall(r"```(?:json|text)\n(.*?)\n```", section, flags=re.DOTALL)
    if example.shape is None:
        assert (now, blocks) == ("", [])
    elif isinstance(example.shape, str):
        assert blocks[0].splitlines()[0] == now.splitlines()[0] == example.shape
    else:
        shapes.check(example.shape, without_rest(json.loads(blocks[0])))
        shapes.check(example.shape, json.loads(now))


def test_the_page_can_be_written_again(client: Client, page: str, tmp_path: Path) -> None:
    """What is not an answer stands on the page as the tool would write it: the page was not edited by hand."""

    class Dry(Client):
        """Reads what the page needs, but writes nothing."""

        def request(self, method: str, url: Any, **more: Any) -> Any:
            return super().request(method if method == "GET" else "OPTIONS", url, **more)

    with Dry(base_url=str(client.base_url), timeout=60) as dry:
        again = written(dry)

    def prose(text: str) -> str:
        """The page without its answers."""
        return re.sub(
            r"```(json|text)\n.*?\n```|`\d{3} [A-Za-z ]+`:\n|The response has no body: [^\n]*",
            "",
            text,
            flags=re.DOTALL,
        )

    assert squeezed(prose(again)) == squeezed(prose(page))


def squeezed(text: str) -> list[str]:
    """The lines that say something."""
    return [line for line in text.splitlines() if line.strip()]
