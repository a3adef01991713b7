"""Documentation of endpoints in OpenAPI: parameters and body from our models, and problems."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from chargeback.api.authorisation import Access, RequiredAccess
from chargeback.api.parameters import (
    CATEGORY_PARAMETER,
    CATEGORY_PREFIX,
    EXCLUDED_FIELD,
    KEYED_FILTERS,
    NOT_PREFIX,
    TAG_PARAMETER,
    TAG_PREFIX,
    CommonParameters,
    StrictModel,
)
from chargeback.api.problems import MEDIA_TYPE

_REF = "#/components/schemas/{model}"
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}

_MEANINGS = {
    400: "The request is invalid; `errors` lists every mistake.",
    401: "The request is not authenticated. Never where `access.mode` is `none`.",
    403: "A web page of another origin sent the request.",
    404: "Not found; for example, no tenant has this name.",
    409: "A sum has more than 26 digits before the decimal point, so one of the stored amounts is wrong.",
    413: "The body is too large.",
    500: "Unexpected error; the log has the details under the id in `detail`.",
    503: "The tenant's storage is currently unavailable.",
    504: "The request ran longer than `api.request_timeout_seconds`.",
}

_ETAG = {
    "ETag": {
        "description": "Identifies the response: if it is sent back as `If-None-Match`, the status is 304 while "
        "nothing has changed.",
        "schema": {"type": "string"},
    }
}
_NOT_MODIFIED = {"description": "The response is still the one that `If-None-Match` identifies."}

#: Status codes of every request that accesses a tenant's storage.
COMMON_STATUSES = (400, 404, 409, 500, 503, 504)

_bodies: dict[str, type[BaseModel]] = {}
#: The documentation of each route with parameters, and the model of these. Only the document needs them described,
#: which would take a fifth of a start.
_queries: list[tuple[dict[str, Any], type[StrictModel]]] = []


def described(
    required: RequiredAccess,
    *,
    query: type[StrictModel] | None = None,
    body: type[StrictModel] | None = None,
    optional_body: bool = False,
    only: tuple[int, ...] = COMMON_STATUSES,
    problems: Mapping[int, str] | None = None,
    extra: Mapping[int, Any] | None = None,
    etag: bool = False,
) -> dict[str, Any]:
    """Return the documentation of a route's responses: ``only`` are its common problems, ``problems`` adds or overrides
    descriptions, ``extra`` are further responses; with ``etag`` the responses have one."""
    statuses = only if body is None else (*only, 403, 413)
    meanings = {status: _MEANINGS[status] for status in statuses} | _denials(required, statuses) | dict(problems or {})
    more: dict[str, Any] = required.declaration()
    if query is not None:
        _queries.append((more, query))
    if body is not None:
        _bodies[body.__name__] = body
        schema = {"$ref": _REF.format(model=body.__name__)}
        more["requestBody"] = {"required": not optional_body, "content": {"application/json": {"schema": schema}}}
    return {
        "openapi_extra": more,
        "responses": {
            **{status: {"description": text, "content": _PROBLEM} for status, text in sorted(meanings.items())},
            **(_with_etag(extra or {}) if etag else extra or {}),
        },
    }


def _denials(required: RequiredAccess, statuses: tuple[int, ...]) -> dict[int, str]:
    """Return the descriptions of the responses 401 and 403 of a route."""
    if required.needs is Access.PUBLIC:
        return {}
    if required.needs is Access.AUTHENTICATED:
        return {401: _MEANINGS[401]}
    lacking = f"The caller lacks the right `{required.needs}` in the tenant"
    lacking += ", or may see only a part of its bill." if required.whole else "."
    return {401: _MEANINGS[401], 403: f"{lacking} Or: {_MEANINGS[403]}" if 403 in statuses else lacking}


def csv_answer(description: str, *, example: str | None = None) -> dict[str, Any]:
    """Return the description of a response that is a CSV file, for the ``responses`` of a route."""
    headers = {
        "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a file name."},
    }
    return {"description": description, "content": csv_content(example), "headers": headers}


def csv_content(example: str | None = None) -> dict[str, Any]:
    """Return the description of CSV as the content of a response."""
    content: dict[str, Any] = {"schema": {"type": "string"}}
    return {"text/csv": content if example is None else content | {"example": example}}


def _with_etag(extra: Mapping[int, Any]) -> dict[int, Any]:
    success = extra.get(200, {})
    return {**extra, 200: {**success, "headers": {**success.get("headers", {}), **_ETAG}}, 304: _NOT_MODIFIED}


def _parameters(model: type[StrictModel]) -> list[dict[str, Any]]:
    schema = model.model_json_schema()
    described = []
    for name, field in schema["properties"].items():
        if name in {*KEYED_FILTERS.values(), EXCLUDED_FIELD}:
            continue
        description = field.pop("description", "")
        field.pop("title", None)
        required = name in schema.get("required", ())
        described.append(
            {"name": name, "in": "query", "required": required, "description": description, "schema": _not_null(field)}
        )
    return (
        [*described, *_KEYED_PARAMETERS.values(), _excluding(schema["$defs"])]
        if issubclass(model, CommonParameters) and model.takes_filters
        else described
    )


def _keyed(prefix: str, pattern: str, description: str, example: dict[str, str]) -> dict[str, Any]:
    """Return the description of parameters whose names have a key."""
    return {
        "name": f"{prefix}<key>",
        "in": "query",
        "required": False,
        "description": f"Any number of parameters `{prefix}<key>=v1,v2`: {description} Repeat a parameter for several "
        "values, or separate them by commas; in a value, `\\,` is a comma and `\\\\` a backslash.",
        "style": "form",
        "explode": True,
        "schema": {"type": "object", "patternProperties": {pattern: _KEYED_TEXT}, "additionalProperties": False},
        "example": example,
    }


_KEYED_TEXT = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[^\u0000]*$"}
_KEYED_PARAMETERS = {
    TAG_PARAMETER: _keyed(
        TAG_PREFIX,
        TAG_PARAMETER,
        "only rows whose tag `<key>` has one of the values; `UNTAGGED` means rows without that tag.",
        {"tag:team": "platform,UNTAGGED"},
    ),
    CATEGORY_PARAMETER: _keyed(
        CATEGORY_PREFIX,
        CATEGORY_PARAMETER,
        "only what the cost category `<key>` assigns to one of the values, or to a value below one of them. If a row "
        "is split, sums and files contain these parts of it.",
        {"category:cost_center": "payments,UNASSIGNED"},
    ),
}


def _excluding(definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the parameters that exclude rows, one for each filter."""
    (filters,) = definitions.values()
    columns = [name for name in filters["properties"] if name not in KEYED_FILTERS.values()]
    return {
        "name": f"{NOT_PREFIX}<filter>",
        "in": "query",
        "required": False,
        "description": (
            f"Any filter with `{NOT_PREFIX}` in front of its name leaves out the rows that it would select, as in "
            f"`{NOT_PREFIX}product_type=SUPPORT` or `{NOT_PREFIX}tag:team=platform`."
        ),
        "style": "form",
        "explode": True,
        "schema": {
            "type": "object",
            "properties": {f"{NOT_PREFIX}{name}": filters["properties"][name]["items"] for name in columns},
            "patternProperties": {
                pattern.replace("^", f"^{re.escape(NOT_PREFIX)}"): _KEYED_TEXT for pattern in _KEYED_PARAMETERS
            },
            "additionalProperties": False,
        },
        "example": {f"{NOT_PREFIX}product_type": "SUPPORT"},
    }


def _not_null(field: dict[str, Any]) -> dict[str, Any]:
    """Remove null from the schema of a parameter: a parameter that is not sent is absent, not null."""
    kinds = [kind for kind in field.pop("anyOf", []) if kind != {"type": "null"}]
    if field.get("default", ...) is None:
        del field["default"]
    return field | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds} if kinds else {})


def add_parameters() -> None:
    """Add the parameters to the documentation of all routes, before the document is made of it."""
    for more, query in _queries:
        more["parameters"] = _parameters(query)


def complete(document: dict[str, Any], problem: type[BaseModel]) -> dict[str, Any]:
    """Return the document with the models that are used only by problems and bodies."""
    models = [(problem, "serialization"), *((model, "validation") for model in _bodies.values())]
    _, definitions = models_json_schema(models, ref_template=_REF)  # type: ignore[arg-type]
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in definitions["$defs"].items():
        schemas.setdefault(name, schema)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path in (*document["paths"].values(), *document.get("webhooks", {}).values()):
        for operation in path.values():
            operation.get("responses", {}).pop("422", None)
    return document


def webhooks() -> Sequence[BaseRoute]:
    """Return the messages that the service sends to webhooks, as routes: one for each kind of event."""
    from chargeback.notifications.bodies import BODIES, message_model  # only the document needs them

    router = APIRouter()
    for kind in BODIES:
        model = message_model(kind)

        def _receive(message: Any) -> None:
            """Stand for the receiver of a message, so that the message is documented."""

        _receive.__annotations__["message"] = model
        router.add_api_route(
            kind,
            _receive,
            methods=["POST"],
            name=kind,
            summary=kind,
            operation_id=f"told_{kind.replace('.', '_')}",
            description=BODIES[kind].__doc__ or "",
            status_code=204,
            response_description="It was accepted, as by any response 2xx.",
            tags=["Notifications"],
        )
    return router.routes
