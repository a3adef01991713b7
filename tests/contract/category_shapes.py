"""The shapes of answers about cost categories, and a category that every tenant of the tests has."""

from __future__ import annotations

from typing import Any

from tests.contract.shapes import Shape, day, decimal, flag, instant, map_of, number, or_null, text

_VERSION: dict[str, Shape] = {"version": number, "who": text, "at": instant, "reason": or_null(text)}
_COUNTS: dict[str, Shape] = {"rules": number, "values": number}
CATEGORIES: dict[str, Shape] = {"items": [{"key": text} | _VERSION | _COUNTS]}
CATEGORY: dict[str, Shape] = {
    "key": text,
    **_VERSION,
    "document": lambda value: isinstance(value, dict) and "rules" in value,
    "warnings": [{"path": text, "message": text}],
}
CATEGORY_HISTORY: dict[str, Shape] = {**_VERSION, **_COUNTS, "removed": flag}
_RULE: dict[str, Shape] = {"index": number, "id": text, "reason": or_null(text)}
_IDENTITY: dict[str, Shape] = {"identity_id": text, "display_name": or_null(text), "amount": decimal}
COVERAGE: dict[str, Shape] = {
    "currency": text,
    "assigned": decimal,
    "unassigned": decimal,
    "percent": or_null(text),
    "by_rule": [{"rule": or_null(_RULE), "value": text, "amount": decimal}],
    "top_unassigned": [_IDENTITY],
}
ASSIGNED: dict[str, Shape] = {
    "subject": map_of(or_null(text)),
    "date": day,
    "version": number,
    "value": or_null(text),
    "path": [text],
    "parts": [{"value": text, "category_share": text, "path": [text]}],
    "rule": or_null(_RULE),
    "reason": or_null(text),
    "lost": [_RULE],
}

#: The key of a category that every tenant has from the beginning.
SEEDED = "cost_center"
SEED: dict[str, Any] = {
    "values": {
        "payments": {"name": "Payments", "parent": "retail"},
        "orders": {"name": "Orders", "parent": "retail"},
        "retail": {"name": "Retail"},
        "platform": {"name": "Platform"},
    },
    "rules": [
        {"match": {"product_type": "SUPPORT*"}, "assign": "platform"},
        {"match": {"identity": ["sa-1"]}, "assign": "payments"},
        {"match": {"topic": {"regex": "[a-m]$"}}, "assign": "orders"},
        {"match": {"product_type": ["KAFKA_STORAGE", "KAFKA_BASE"]}, "split": {"payments": "60", "orders": "40"}},
    ],
    "share": [{"from": "platform", "to": "*", "by": "proportional"}],
}
