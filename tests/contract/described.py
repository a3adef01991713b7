"""Check responses against the OpenAPI document: exactly the fields of their schema, each with its type."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
import jsonschema_rs

#: The OpenAPI document, from which the page is made.
DOCUMENT: Final = Path(__file__).parents[2] / "web" / "openapi.json"
_JSON: Final = "application/json"


def check_described(response: httpx.Response) -> None:
    """Fail unless a successful JSON response conforms to the document."""
    if not response.is_success or response.headers.get("content-type") != _JSON or response.request.method == "HEAD":
        return
    response.read()
    method, path = response.request.method, response.request.url.path
    check_answer(response.json(), method, path, response.status_code)


def check_answer(answer: Any, method: str, path: str, status: int = 200) -> None:
    """Fail unless ``answer`` to a request conforms to the document."""
    found = _operation(method, path)
    if found is not None:
        error = next(_validator(*found, status).iter_errors(answer), None)
        assert error is None, f"{method} {path}: {error.instance_path}: {error.message[:500]}"


def check_problem(body: Any) -> None:
    """Fail unless the body of an error response conforms to the document."""
    _problem_validator().validate(body)


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return document


@cache
def _operation(method: str, path: str) -> tuple[str, str] | None:
    """Return the path template and the method of a request, or None if the document does not describe it. A literal
    path is preferred to one with parameters."""
    fitting = [
        template
        for template, operations in _document()["paths"].items()
        if method.lower() in operations and re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), path)
    ]
    return (min(fitting, key=lambda template: template.count("{")), method.lower()) if fitting else None


@cache
def _problem_validator() -> jsonschema_rs.Draft202012Validator:
    return _validates({"$ref": "#/components/schemas/Problem"})


@cache
def _validator(template: str, method: str, status: int) -> jsonschema_rs.Draft202012Validator:
    content = _document()["paths"][template][method]["responses"][str(status)]["content"]
    return _validates(content[_JSON]["schema"])


def _validates(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    whole = schema | {"components": _document()["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
