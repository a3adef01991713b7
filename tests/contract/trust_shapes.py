"""The records of what changed, of policies and of measurements, field by field, written down by hand as the others."""

from __future__ import annotations

from tests.contract.shapes import Shape, day, decimal, instant, map_of, number, one_of, or_null, text

EFFECTS: dict[str, Shape] = {
    "calendar": decimal,
    "quantity": decimal,
    "price": decimal,
    "policy": decimal,
    "share": decimal,
    "ownership": decimal,
    "correction": decimal,
    "new": decimal,
    "gone": decimal,
}
_CHANGE: dict[str, Shape] = {
    "before": decimal,
    "after": decimal,
    "delta": decimal,
    "per_day_before": or_null(decimal),
    "per_day_after": or_null(decimal),
    "effects": EFFECTS,
    "sentence": text,
}
CHANGES: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "timezone": text,
    "days_with_costs": number,
    "compared_with": {"start_date": day, "end_date": day, "days_with_costs": number},
    "currency": text,
    "items": [_CHANGE | {"dimensions": map_of(or_null(lambda value: isinstance(value, str)))}],
    "other": or_null(_CHANGE | {"count": number}),
    "totals": _CHANGE,
    "names": map_of(map_of(text)),
}
POLICY: dict[str, Shape] = {
    "product_type": text,
    "hash": text,
    "source": one_of("shipped", "configured", "recorded", "unknown"),
    "portions": [{"number": number, "share": decimal, "methods": [text]}],
    "first_used_at": or_null(instant),
}
MEASUREMENT: dict[str, Shape] = {
    "date": day,
    "measure": text,
    "resource_id": text,
    "subject": text,
    "value": decimal,
}
