"""The contract, the routes, the OpenAPI document and ``docs/api.md`` have the same endpoints and parameters.

These tests need no service: ``make check`` runs them.
"""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from chargeback import __version__
from chargeback.api.app import create_app
from chargeback.api.authorisation import api_routes
from chargeback.api.services import Services
from tests.contract.described import DOCUMENT
from tests.contract.documentation import PAGE, document_text, fields, page_of, parameters, steady
from tests.contract.endpoints import BY_NAME, COMMON, ENDPOINTS, TENANT, Endpoint
from tests.contract.examples import EXAMPLES

STALE = "stale: run `python -m tests.contract.documentation`"
#: Endpoints whose responses are neither JSON nor CSV; other pages describe them.
ELSEWHERE = {
    "GET /metrics/chargebacks",
    *(f"GET {TENANT}/{name}" for name in ("statement.html", "statement.pdf", "statements.zip", "closings.jsonl")),
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The OpenAPI document from the code."""
    return create_app(Services(__version__, "both")).openapi()


def operation_of(document: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    """Return the description of an endpoint in the document."""
    operation: dict[str, Any] = document["paths"][endpoint.documented][endpoint.method.lower()]
    return operation


def test_routes_are_those_of_the_contract() -> None:
    """The routes are exactly those of the contract."""
    app = create_app(Services("0", "both"))
    found = set()
    for template, operations in app.openapi()["paths"].items():
        found |= {f"{method.upper()} {template}" for method in operations}
    assert found == {name for name, endpoint in BY_NAME.items() if not endpoint.is_file}
    hidden = {f"GET {route.path}" for route in api_routes(app.routes) if not route.include_in_schema}
    assert hidden == {name for name, endpoint in BY_NAME.items() if endpoint.is_file}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_openapi_document(document: dict[str, Any], endpoint: Endpoint) -> None:
    """The document has exactly the parameters, the body fields and the success statuses of the contract."""
    operation = operation_of(document, endpoint)
    queries = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
    assert queries == endpoint.parameters or (endpoint.is_file and queries > endpoint.parameters), steady
    assert {name for name, _, _ in fields(document, operation)} == endpoint.body
    in_path = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", endpoint.path))
    if endpoint.is_file:
        assert "text/csv" in operation["responses"]["200"]["content"]
    successes = {status for status in operation["responses"] if status.startswith("2")}
    assert successes == {str(each) for each in (endpoint.success, endpoint.other_success) if each is not None}


def test_the_browser_page_knows_this_document(document: dict[str, Any]) -> None:
    """The page's types are generated from the document in the code: `python -m tests.contract.documentation` writes it,
    and `npm run types` in `web/` the types."""
    assert document_text(document) == DOCUMENT.read_text(encoding="utf-8"), STALE


def test_every_parameter_is_described(document: dict[str, Any]) -> None:
    """The document has a description of every parameter and every field."""
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
    """The text of the page ``docs/api.md``."""
    return PAGE.read_text(encoding="utf-8")


def sections(page: str) -> dict[str, str]:
    """A map from endpoint to its section of the page."""
    parts = re.split(r"^### (.+)$", page, flags=re.MULTILINE)
    return {name: text.partition("\n## ")[0] for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_endpoint_is_on_the_page(page: str) -> None:
    """The page has exactly the endpoints of the contract."""
    assert sections(page).keys() | ELSEWHERE == BY_NAME.keys()
    assert {example.endpoint for example in EXAMPLES} == sections(page).keys()
    assert all(name in page for name in ELSEWHERE)


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS if each.name not in ELSEWHERE], ids=lambda each: each.name
)
def test_every_parameter_is_on_the_page(page: str, endpoint: Endpoint) -> None:
    """The table of an endpoint has exactly its own parameters or fields; the common ones have one table."""
    text = sections(page)[endpoint.name]
    named = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))
    assert named == (frozenset() if endpoint.is_file else endpoint.query | endpoint.body)
    common = page.partition("## Common parameters")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", common, flags=re.MULTILINE)) == COMMON


def test_the_page_can_be_written_again(document: dict[str, Any], page: str) -> None:
    """Apart from responses, the page is what the tool would write, so it is neither outdated nor edited by hand.
    Responses are compared in `test_documented_answers.py`."""
    nothing = httpx.Response(200, json={})
    again = page_of(document, nothing, lambda _: nothing)

    def prose(text: str) -> str:
        """Return the page without its responses."""
        return re.sub(
            r"```(json|text)\n.*?\n```|`\d{3} [A-Za-z ]+`:\n|The response has no body: [^\n]*",
            "",
            text,
            flags=re.DOTALL,
        )

    assert squeezed(prose(again)) == squeezed(prose(page)), STALE


def test_the_page_does_not_change_by_itself(page: str) -> None:
    """No response shows the time at which the page was written, so writing it again does not change it."""
    assert steady(page) == page


def test_every_subject_has_one_heading(page: str) -> None:
    """The endpoints of a subject are under one heading, so that links to headings need no numbers."""
    headings = re.findall(r"^## (.+)$", page, flags=re.MULTILINE)
    assert len(headings) == len(set(headings))


def squeezed(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line for line in text.splitlines() if line.strip()]
