"""The records of the contract, field by field: what each must have, and nothing else.

Written down by hand from the specification, on purpose apart from the models that the service answers with.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

#: A shape is a test of a value, a record (exactly these fields), or a list of one shape.
Shape = Callable[[Any], bool] | dict[str, Any] | list[Any]


def text(value: Any) -> bool:
    """Some text."""
    return isinstance(value, str) and value != ""


def number(value: Any) -> bool:
    """A whole number that is not negative."""
    return type(value) is int and value >= 0


def flag(value: Any) -> bool:
    """True or false."""
    return type(value) is bool


def decimal(value: Any) -> bool:
    """An exact decimal as text: plain notation, two decimals at least, no superfluous zeros beyond."""
    return isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d*)\.\d\d(\d*[1-9])?", value) is not None


def drawn(value: Any) -> bool:
    """A JSON number, which is for display only."""
    return type(value) in {int, float}


def day(value: Any) -> bool:
    """A calendar date."""
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None and bool(parsed_day(value))


def instant(value: Any) -> bool:
    """An instant in UTC, with a ``Z``."""
    plain = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value) is not None
    return plain and bool(datetime.fromisoformat(value))


def parsed_day(value: str) -> date:
    """The date that a text spells."""
    return date.fromisoformat(value)


def metadata(value: Any) -> bool:
    """A flat record of whatever else is known; sums of money in it are no floats."""
    return isinstance(value, dict) and not any(isinstance(each, float) for each in value.values())


def or_null(shape: Shape) -> Shape:
    """What may be missing."""
    return lambda value: value is None or problem(shape, value) is None


def either(*shapes: Shape) -> Shape:
    """One of some shapes."""
    return lambda value: any(problem(shape, value) is None for shape in shapes)


def one_of(*words: str | None) -> Shape:
    """One of some words."""
    return lambda value: value in words


def map_of(shape: Shape) -> Shape:
    """A record with any keys."""
    return lambda value: (
        isinstance(value, dict)
        and all(isinstance(key, str) and problem(shape, each) is None for key, each in value.items())
    )


def read_page(shape: Shape) -> Shape:
    """The envelope of a paginated list."""
    return {"items": [shape], "total": number, "page": number, "page_size": number, "pages": number}


def problem(shape: Shape, value: Any, where: str = "$") -> str | None:
    """What is wrong with ``value``; nothing when it has the shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict) or value.keys() != shape.keys():
            found = sorted(value) if isinstance(value, dict) else value
            return f"{where} should have the fields {sorted(shape)}, not {found!r}"
        parts = [problem(shape[name], value[name], f"{where}.{name}") for name in shape]
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} should be a list, not {value!r}"
        parts = [problem(shape[0], each, f"{where}[{index}]") for index, each in enumerate(value)]
    else:
        return None if shape(value) else f"{where} is {value!r}, not {shape.__doc__ or shape.__name__}"
    return next((part for part in parts if part is not None), None)


def check(shape: Shape, value: Any) -> None:
    """Fail when ``value`` has not the shape."""
    wrong = problem(shape, value)
    assert wrong is None, wrong


ME: Shape = {
    "user": text,
    "kind": one_of("anonymous", "proxy", "jwt", "token"),
    "groups": [text],
    "tenants": [
        {
            "tenant_name": text,
            "rights": [one_of("read", "export", "tag", "run", "close", "admin")],
            "scope": or_null(map_of([text])),
            "role": either(text, one_of("")),
        }
    ],
}
TOPIC_STATUS: dict[str, Shape] = {
    "topic_attribution_status": one_of("disabled", "enabled", "config_error"),
    "topic_attribution_error": or_null(text),
}
BILLING_LINE: dict[str, Shape] = {
    "ecosystem": text,
    "tenant_id": text,
    "timestamp": instant,
    "resource_id": text,
    "product_category": text,
    "product_type": text,
    "quantity": or_null(decimal),
    "unit_price": or_null(decimal),
    "total_cost": decimal,
    "currency": text,
    "granularity": one_of("daily", "hourly"),
    "metadata": metadata,
}
DIMENSION: dict[str, Shape] = {
    "dimension_id": lambda value: number(value) and 0 < value < 2**53,
    "ecosystem": text,
    "tenant_id": text,
    "resource_id": text,
    "product_category": text,
    "product_type": text,
    "identity_id": text,
    "cost_type": one_of("usage", "shared"),
    "allocation_method": one_of("usage_ratio", "even_split", "proportional", "direct", "terminal"),
    "allocation_detail": text,
}
#: What a row has beside the rest where the tenant has cost categories: the values that it is assigned to, by category.
CATEGORIES: dict[str, Shape] = {"categories": map_of([{"value": text, "category_share": text, "amount": decimal}])}

CHARGEBACK: dict[str, Shape] = DIMENSION | {
    "timestamp": instant,
    "amount": decimal,
    "tags": map_of(text),
    "metadata": metadata,
}
ISSUE: dict[str, Shape] = {
    "ecosystem": text,
    "resource_id": text,
    "product_type": text,
    "identity_id": text,
    "allocation_detail": text,
    "row_count": number,
    "usage_cost": decimal,
    "shared_cost": decimal,
    "total_cost": decimal,
}
BUCKET: dict[str, Shape] = {
    "dimensions": map_of(or_null(text)),
    "time_bucket": text,
    "total_amount": decimal,
    "usage_amount": decimal,
    "shared_amount": decimal,
    "row_count": number,
}
AGGREGATE: dict[str, Shape] = {
    "buckets": [BUCKET],
    "currency": text,
    "total_amount": decimal,
    "usage_amount": decimal,
    "shared_amount": decimal,
    "total_rows": number,
}
DATES: dict[str, Shape] = {"dates": [day]}
_LIFE: dict[str, Shape] = {
    "ecosystem": text,
    "tenant_id": text,
    "display_name": or_null(text),
    "created_at": or_null(instant),
    "deleted_at": or_null(instant),
    "last_seen_at": instant,
    "metadata": metadata,
}
RESOURCE: dict[str, Shape] = _LIFE | {
    "resource_id": text,
    "resource_type": text,
    "parent_id": or_null(text),
    "owner_id": or_null(text),
    "status": one_of("active", "deleted"),
}
IDENTITY: dict[str, Shape] = _LIFE | {"identity_id": text, "identity_type": text}
_COUNTS: Shape = map_of({"total": number, "active": number, "deleted": number})
INVENTORY: dict[str, Shape] = {"resource_counts": _COUNTS, "identity_counts": _COUNTS}
TAG: dict[str, Shape] = {
    "tag_id": number,
    "tenant_id": text,
    "entity_type": one_of("resource", "identity"),
    "entity_id": text,
    "tag_key": text,
    "tag_value": text,
    "created_by": text,
    "created_at": instant,
    "valid_from": or_null(day),
    "valid_to": or_null(day),
}
BULK: dict[str, Shape] = {"created_count": number, "updated_count": number, "skipped_count": number}
TENANT: dict[str, Shape] = TOPIC_STATUS | {
    "tenant_name": text,
    "tenant_id": text,
    "ecosystem": text,
    "dates_pending": number,
    "dates_calculated": number,
    "last_calculated_date": or_null(day),
    "storage_error": or_null(text),
}
DAY_STATE: dict[str, Shape] = {
    "tracking_date": day,
    "billing_gathered": flag,
    "resources_gathered": flag,
    "chargeback_calculated": flag,
    "topic_overlay_gathered": flag,
    "topic_attribution_calculated": flag,
}
INCOMPLETE_DAY: dict[str, Shape] = {"tracking_date": day, "reasons": [text]}
TENANT_STATUS: dict[str, Shape] = TOPIC_STATUS | {
    "tenant_name": text,
    "tenant_id": text,
    "ecosystem": text,
    "states": [DAY_STATE],
    "incomplete": [INCOMPLETE_DAY],
}
RUN_ACCEPTED: dict[str, Shape] = {"tenant_name": text, "status": one_of("started"), "message": text}
PIPELINE_STATUS: dict[str, Shape] = {
    "tenant_name": text,
    "is_running": flag,
    "permanent_failure": or_null(text),
    "last_run": or_null(instant),
    "last_result": or_null(
        {
            "dates_gathered": number,
            "dates_calculated": number,
            "chargeback_rows_written": number,
            "errors": [text],
            "completed_at": instant,
        }
    ),
}
HEALTH: dict[str, Shape] = {"status": one_of("ok"), "version": text}
READINESS: dict[str, Shape] = {
    "status": one_of("ready", "initializing", "no_data", "error"),
    "version": text,
    "mode": one_of("api", "worker", "both"),
    "tenants": [
        TOPIC_STATUS
        | {
            "tenant_name": text,
            "tables_ready": flag,
            "has_data": flag,
            "pipeline_running": flag,
            "pipeline_stage": one_of(None, "gathering", "calculating", "topic_overlay", "emitting", "retention"),
            "pipeline_current_date": or_null(day),
            "last_run_status": one_of(
                None, "running", "completed", "completed_with_errors", "failed", "timed_out", "interrupted"
            ),
            "last_run_at": or_null(instant),
            "permanent_failure": or_null(text),
            "storage_error": or_null(text),
        }
    ],
}
TOPIC_ROW: dict[str, Shape] = {
    "dimension_id": lambda value: number(value) and 0 < value < 2**53,
    "ecosystem": text,
    "tenant_id": text,
    "timestamp": instant,
    "env_id": or_null(text),
    "cluster_resource_id": text,
    "topic_name": text,
    "product_category": text,
    "product_type": text,
    "attribution_method": one_of("bytes_ratio", "retained_bytes_ratio", "even_split", "ATTRIBUTION_FAILED"),
    "amount": decimal,
    "metadata": metadata,
}
TOPIC_AGGREGATE: dict[str, Shape] = {
    "buckets": [
        {"dimensions": map_of(or_null(text)), "time_bucket": text, "total_amount": decimal, "row_count": number}
    ],
    "currency": text,
    "total_amount": decimal,
    "total_rows": number,
}
TAG_KEYS: dict[str, Shape] = {"keys": [text]}
TAG_VALUES: dict[str, Shape] = {"values": [text]}
PROBLEM: dict[str, Shape] = {"type": text, "title": text, "status": number, "detail": text}
INVALID: dict[str, Shape] = PROBLEM | {"errors": [{"parameter": text, "message": text}]}
