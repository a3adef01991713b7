"""The records of statements, field by field, written down by hand as the others."""

from __future__ import annotations

import re
from typing import Any

from tests.contract.shapes import Shape, day, decimal, flag, instant, map_of, number, one_of, or_null, text
from tests.contract.trust_shapes import EFFECTS


def cents(value: Any) -> bool:
    """An amount with exactly two decimals."""
    return isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d*)\.\d\d", value) is not None


STATED: dict[str, Shape] = {"amount": decimal, "rounded": cents}
_HEADING: dict[str, Shape] = {
    "tenant_name": text,
    "by": text,
    "period": text,
    "start_date": day,
    "end_date": day,
    "days": number,
    "calculated_days": number,
    "data_through": or_null(day),
    "issued_at": or_null(instant),
    "status": one_of("PROVISIONAL"),
    "basis": one_of("accrual"),
    "currency": text,
    "revision": number,
    "category_version": or_null(number),
    "scope": or_null(map_of([text])),
}
_RECIPIENT: dict[str, Shape] = {
    "value": text,
    "name": or_null(text),
    "path": [{"value": text, "name": or_null(text)}],
    "gl": map_of(text),
    "contacts": [text],
}
_TIE_OUT: Shape = or_null(
    {
        "state": one_of("equal", "differs", "pending", "none"),
        "difference": decimal,
        "statements": STATED,
        "billed": STATED,
        "outdated": STATED,
        "pending": STATED,
    }
)
_VERDICT: Shape = or_null(one_of("acknowledged", "disputed"))
REPLY: dict[str, Shape] = {
    "number": text,
    "revision": number,
    "digest": or_null(text),
    "is_current": flag,
    "verdict": one_of("acknowledged", "disputed"),
    "note": text,
    "data_through": or_null(day),
    "created_by": text,
    "created_at": instant,
}
STATEMENTS: dict[str, Shape] = _HEADING | {
    "items": [
        {
            "number": text,
            "digest": text,
            "recipient": _RECIPIENT,
            "previous": or_null(decimal),
            "delta": or_null(decimal),
            "verdict": _VERDICT,
        }
        | STATED
    ],
    "total": STATED,
    "tie_out": _TIE_OUT,
}
_RANKING: dict[str, Shape] = {
    "items": [{"id": text, "name": or_null(text), "within": or_null(text)} | STATED],
    "other": or_null({"count": number} | STATED),
    "total": STATED,
}
STATEMENT: dict[str, Shape] = (
    _HEADING
    | STATED
    | {
        "number": text,
        "supersedes": or_null(text),
        "digest": text,
        "recipient": _RECIPIENT,
        "lines": [
            {"kind": one_of("direct", "shared_in", "shared_out"), "product_category": text, "product_type": text}
            | STATED
        ],
        "previous": or_null(
            {
                "period": text,
                "amount": decimal,
                "delta": decimal,
                "effects": EFFECTS,
                "sentence": text,
            }
        ),
        "identities": or_null(_RANKING),
        "resources": _RANKING,
        "topics": or_null(_RANKING),
        "unit_costs": [
            {
                "per": one_of("gib_in", "gib_out"),
                "unit": one_of("GiB"),
                "amount": decimal,
                "usage": decimal,
                "unit_cost": decimal,
            }
        ],
        "split": {
            "policies": [
                {
                    "product_type": text,
                    "hash": text,
                    "portions": [{"number": number, "share": decimal, "methods": [text]}],
                }
            ],
            "rules": or_null([{"id": or_null(text), "reason": or_null(text), "amount": decimal}]),
            "steps": or_null([{"from": text, "by": text}]),
        },
        "verdict": _VERDICT,
        "replies": or_null([REPLY]),
        "tie_out": _TIE_OUT,
    }
)

JOURNAL: dict[str, Shape] = _HEADING | {
    "number": text,
    "lines": [
        {
            "line": number,
            "kind": one_of("expense", "clearing"),
            "account": text,
            "debit": cents,
            "credit": cents,
            "currency": text,
            "value": or_null(text),
            "name": or_null(text),
            "gl": map_of(text),
            "contacts": [text],
            "statement": or_null(text),
            "text": text,
        }
    ],
    "debit": cents,
    "credit": cents,
}
