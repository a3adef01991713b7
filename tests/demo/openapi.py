"""The provider's own OpenAPI documents, to check the demo organisation's responses against.

They are not part of this repository: they are looked for in ``../shared/confluent-openapi`` or in the folder that
``CHARGEBACK_PROVIDER_OPENAPI`` names.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker

_ROOT = Path(__file__).resolve().parents[2]


def folder() -> Path:
    """Return the folder of the documents; skip the test, with the reason, if there is none."""
    found = Path(os.environ.get("CHARGEBACK_PROVIDER_OPENAPI", _ROOT.parent / "shared" / "confluent-openapi"))
    if not found.is_dir():
        pytest.skip(f"the provider's OpenAPI documents are not in {found} (set CHARGEBACK_PROVIDER_OPENAPI)")
    return found


@cache
def _document(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8") as file:
        document: dict[str, Any] = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    document["components"]["schemas"] = json_schema(document["components"]["schemas"])
    return document


def validator(document: str, path: str, status: int = 200) -> Draft202012Validator:
    """Return a validator for the responses of ``GET path``."""
    whole = _document(folder() / document)
    response = whole["paths"][path]["get"]["responses"][str(status)]
    if "$ref" in response:
        response = whole["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema = json_schema(response["content"]["application/json"]["schema"])
    root = {**schema, "components": {"schemas": whole["components"]["schemas"]}}
    return Draft202012Validator(root, format_checker=FormatChecker())


def json_schema(value: Any) -> Any:
    """Return an OpenAPI 3.0 schema as JSON Schema, in which ``nullable`` allows the value or null."""
    if isinstance(value, list):
        return [json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {name: json_schema(item) for name, item in value.items() if name not in ("nullable", "example")}
    if value.get("nullable") is True and set(plain) - {"description"}:
        return {"anyOf": [plain, {"type": "null"}]}
    return plain
