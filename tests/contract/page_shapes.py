"""The records of costs and of what pages for people ask for, field by field, written down by hand as the others."""

from __future__ import annotations

from tests.contract.shapes import TOPIC_STATUS, Shape, day, decimal, flag, instant, number, one_of, or_null, text

_ENTITY_NAME: dict[str, Shape] = {"value": or_null(lambda value: isinstance(value, str)), "name": or_null(text)}
_OTHERS: dict[str, Shape] = {"count": number, "amount": decimal, "previous": or_null(decimal)}
_COST_ITEM: dict[str, Shape] = _ENTITY_NAME | {
    "kind": or_null(text),
    "deleted_at": or_null(instant),
    "amount": decimal,
    "previous": or_null(decimal),
    "usage": decimal,
    "rows": number,
    "amounts": [decimal],
}
COST_DAY: dict[str, Shape] = {
    "date": day,
    "state": one_of("equal", "differs", "pending", "none"),
    "billed": decimal,
    "charged": decimal,
    "difference": decimal,
    "topics": flag,
    "error": or_null(text),
}
COSTS: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "timezone": text,
    "currency": text,
    "revision": text,
    "compared_with": or_null({"start_date": day, "end_date": day, "days_with_costs": number}),
    "days_with_costs": number,
    "times": [day],
    "amounts": [decimal],
    "previous_amounts": [or_null(decimal)],
    "total": {
        "amount": decimal,
        "usage": decimal,
        "shared": decimal,
        "rows": number,
        "unallocated": decimal,
        "previous": or_null(decimal),
        "previous_unallocated": or_null(decimal),
    },
    "breakdowns": [
        {
            "by": text,
            "items": [_COST_ITEM],
            "other": or_null(_OTHERS | {"amounts": [decimal]}),
            "movers": [_ENTITY_NAME | {"amount": decimal, "previous": decimal}],
        }
    ],
    "issues": or_null([{"reason": text, "unallocated": flag, "amount": decimal, "rows": number, "resources": number}]),
    "days": or_null([COST_DAY]),
    "forecast": or_null(
        {
            "until": day,
            "actual_to": day,
            "actual": decimal,
            "expected": decimal,
            "low": decimal,
            "high": decimal,
            "method": text,
        }
    ),
    "topics": or_null(
        {
            "total": decimal,
            "items": [
                {
                    "cluster_resource_id": text,
                    "cluster_name": or_null(text),
                    "topic_name": text,
                    "amount": decimal,
                    "previous": or_null(decimal),
                }
            ],
            "other": or_null(_OTHERS),
            "ignored_filters": [text],
        }
    ),
}

TENANT_OVERVIEW: dict[str, Shape] = TOPIC_STATUS | {
    "tenant_name": text,
    "tenant_id": text,
    "ecosystem": text,
    "currency": text,
    "first_date": or_null(day),
    "last_date": or_null(day),
    "lookback_days": number,
    "permanent_failure": or_null(text),
    "tag_keys": [{"key": text, "coverage": or_null(text)}],
    "features": {"can_tag": flag, "can_run": flag, "topics": flag},
    "run": or_null({"stage": or_null(text), "date": or_null(day)}),
}
RECONCILIATION: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "total": {"billed": decimal, "charged": decimal, "difference": decimal},
    "days": [COST_DAY | {"fingerprint": or_null(text), "gathered_at": or_null(instant)}],
}
RUNS: dict[str, Shape] = {
    "items": [
        {
            "run_id": text,
            "status": text,
            "started_at": instant,
            "completed_at": or_null(instant),
            "dates_gathered": number,
            "dates_calculated": number,
            "chargeback_rows_written": number,
            "errors": [text],
        }
    ]
}
FLOW: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "by": [text],
    "nodes": [
        {
            "column": number,
            "by": text,
            "value": or_null(text),
            "name": or_null(text),
            "amount": decimal,
            "previous": or_null(decimal),
            "other": or_null(number),
        }
    ],
    "links": [{"source": number, "target": number, "amount": decimal, "previous": or_null(decimal)}],
}
EXPLANATION: dict[str, Shape] = {
    "sentence": text,
    "date": day,
    "line_id": text,
    "identity_id": text,
    "identity_name": or_null(text),
    "row": or_null(
        {
            "timestamp": instant,
            "line_id": text,
            "portion": number,
            "identity_id": text,
            "resource_id": text,
            "product_category": text,
            "product_type": text,
            "cost_type": one_of("usage", "shared"),
            "allocation_method": text,
            "allocation_detail": text,
            "chain_position": number,
            "policy_hash": text,
            "amount": decimal,
            "portion_share": decimal,
            "identity_usage": or_null(decimal),
            "total_usage": or_null(decimal),
        }
    ),
    "why_nothing": or_null(text),
    "line": or_null(
        {
            "timestamp": instant,
            "line_id": text,
            "resource_id": text,
            "resource_name": or_null(text),
            "product_category": text,
            "product_type": text,
            "quantity": or_null(decimal),
            "unit_price": or_null(decimal),
            "total_cost": decimal,
            "currency": text,
            "granularity": one_of("daily", "hourly"),
            "unit": or_null(text),
            "description": or_null(text),
        }
    ),
    "policy": or_null(
        {
            "product_type": text,
            "matched": or_null(text),
            "hash": text,
            "source": one_of("shipped", "configured", "recorded"),
            "portions": [{"number": number, "share": decimal, "methods": [text]}],
        }
    ),
    "portion": or_null({"number": number, "share": decimal, "amount": decimal}),
    "methods": [{"position": number, "method": text, "applied": flag, "why_not": or_null(text), "candidates": number}],
    "evidence": or_null(
        {
            "measure": or_null(text),
            "total": or_null(decimal),
            "contenders": [{"identity_id": text, "name": or_null(text), "value": or_null(decimal), "ratio": decimal}],
            "contenders_total": number,
            "members": number,
            "metrics_available": flag,
        }
    ),
    "evidence_missing": or_null(text),
    "arithmetic": or_null(
        {
            "exact": text,
            "units_floor": text,
            "spare_units": number,
            "remainder_rank": number,
            "extra_unit": flag,
            "amount": decimal,
        }
    ),
    "siblings": {"rows": number, "sum": decimal, "equals_line": or_null(flag)},
    "revision": or_null(number),
    "revisions": [{"revision": number, "calculated_at": instant, "cause": text, "amount": or_null(decimal)}],
    "recomputed": one_of("same", "different", None),
}
FOUND: dict[str, Shape] = {
    "items": [
        {
            "kind": one_of("identity", "resource", "topic", "tag"),
            "id": text,
            "name": or_null(text),
            "type": or_null(text),
            "parent_id": or_null(text),
            "amount": or_null(decimal),
        }
    ],
    "currency": text,
}
TOPICS: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "total": decimal,
    "items": [
        {
            "cluster_resource_id": text,
            "cluster_name": or_null(text),
            "topic_name": text,
            "amount": decimal,
            "previous": or_null(decimal),
            "bytes_in": or_null(decimal),
            "bytes_out": or_null(decimal),
            "zombie": flag,
        }
    ],
    "other": or_null(_OTHERS),
    "ignored_filters": [text],
}
VIEW: dict[str, Shape] = {
    "id": text,
    "name": text,
    "page": text,
    "query": lambda value: isinstance(value, str),
    "created_by": text,
    "created_at": instant,
}
_REMOVED: dict[str, Shape] = {"deleted_count": number, "missing_count": number}
REMOVAL_PREVIEW: dict[str, Shape] = {
    **_REMOVED,
    "entities": [{"entity_type": one_of("resource", "identity"), "entity_id": text, **_REMOVED}],
}

_CHANGED: dict[str, Shape] = {"before": decimal, "after": decimal, "delta": decimal}
DIFFERENCE: dict[str, Shape] = {
    "currency": text,
    "total_before": decimal,
    "total_after": decimal,
    "delta": decimal,
    "moved": decimal,
    "items": [{"dimensions": lambda value: isinstance(value, dict), "causes": [text]} | _CHANGED],
    "other": or_null({"count": number} | _CHANGED),
}
REVISIONS: dict[str, Shape] = {
    "date": day,
    "items": [
        {
            "dataset": one_of("chargebacks", "topics"),
            "revision": number,
            "calculated_at": instant,
            "cause": text,
            "run_id": or_null(text),
            "rows": number,
            "total": or_null(decimal),
            "moved": or_null(decimal),
            "billing_fingerprint": or_null(text),
            "policies_hash": or_null(text),
            "is_kept": flag,
        }
    ],
}
