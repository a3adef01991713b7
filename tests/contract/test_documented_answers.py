"""The responses in ``docs/api.md`` match those of a service, which serves the documented OpenAPI document."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.contract import described
from tests.contract.described import DOCUMENT
from tests.contract.documentation import PAGE, REST, Asker, document_text
from tests.contract.endpoints import BY_NAME
from tests.contract.examples import EXAMPLES, Example
from tests.contract.records import Client
from tests.contract.test_documents import sections
from tests.support.serving import wait_until


def test_the_service_serves_this_document(client: Client) -> None:
    """A running service returns the OpenAPI document from which the page and its types are generated."""
    assert document_text(client.answer("/openapi.json")) == DOCUMENT.read_text(encoding="utf-8")


def without_rest(value: Any) -> Any:
    """Return a documented response without the placeholder for the rest of a list."""
    if isinstance(value, list):
        return [without_rest(each) for each in value if each != REST]
    if isinstance(value, dict):
        return {name: without_rest(each) for name, each in value.items()}
    return value


@pytest.mark.extensive
def test_documented_answers_are_what_is_answered_now(scratch: Client) -> None:
    """Each documented request is on the page and succeeds; the documented and the present response conform to the
    OpenAPI document."""
    asker, documented = Asker(scratch, "scratch"), sections(PAGE.read_text(encoding="utf-8"))
    for example in EXAMPLES:
        text = documented[example.endpoint]
        assert f"$ {example.command}\n" in text or not example.is_shown, example.endpoint
        response = asker.ask(example)
        endpoint = BY_NAME[example.endpoint]
        assert response.status_code in (endpoint.success, endpoint.other_success), f"{example.command}: {response.text}"
        check_answer(example, text, response.text, response.status_code)
    wait_until(lambda: not scratch.answer("/api/v1/tenants/scratch/pipeline/status")["is_running"], 120)


def check_answer(example: Example, section: str, now: str, status: int) -> None:
    """Check that the response on the page and the present response are of the same kind."""
    blocks = re.findall(r"```(?:json|text)\n(.*?)\n```", section, flags=re.DOTALL)
    if not now:
        assert blocks == []
    elif example.header is not None:
        assert blocks[0].splitlines()[0] == now.splitlines()[0] == example.header
    else:
        path = example.path.partition("?")[0].replace("$", "")
        described.check_answer(without_rest(json.loads(blocks[0])), example.method, path, status)
