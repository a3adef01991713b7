"""The records of costs and of what pages for people ask for, field by field, written down by hand as the others."""

from __future__ import annotations

from tests.contract.shapes import (
    TOPIC_STATUS,
    Shape,
    day,
    decimal,
    drawn,
    either,
    flag,
    instant,
    map_of,
    number,
    one_of,
    or_null,
    text,
)

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
    "currencies": [text],
    "first_date": or_null(day),
    "last_date": or_null(day),
    "lookback_days": number,
    "permanent_failure": or_null(text),
    "tag_keys": [{"key": text, "coverage": or_null(text)}],
    "features": {"can_tag": flag, "can_run": flag, "topics": flag},
    "run": or_null({"stage": or_null(text), "date": or_null(day)}),
}
_RECONCILED: dict[str, Shape] = {
    "state": one_of("equal", "differs", "pending", "none"),
    "billed": decimal,
    "charged": decimal,
    "difference": decimal,
    "unallocated": decimal,
    "pending": decimal,
    "by_topic": or_null(decimal),
    "lines": number,
    "rows": number,
    "revision": or_null(number),
    "policies": or_null(one_of("current", "superseded")),
    "calculated_at": or_null(instant),
}
RECONCILIATION: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "group_by": one_of("day", "month", "product_type", "resource_id"),
    "total": _RECONCILED,
    "days": [_RECONCILED | COST_DAY | {"fingerprint": or_null(text), "gathered_at": or_null(instant)}],
    "buckets": [_RECONCILED | {"value": text, "name": or_null(text)}],
}
_COMPARED: dict[str, Shape] = {"theirs": decimal, "ours": decimal, "delta": decimal}
EXTERNAL: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "compared_with": one_of("billing", "chargebacks"),
    "lines": number,
    "outside": number,
    "total": _COMPARED,
    "only_theirs": {"count": number, "amount": decimal},
    "only_ours": {"count": number, "amount": decimal},
    "items": [
        {
            "entity": or_null(text),
            "name": or_null(text),
            "product_type": or_null(text),
            "theirs": or_null(decimal),
            "ours": or_null(decimal),
            "delta": decimal,
        }
    ],
    "other": or_null({"count": number} | _COMPARED),
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
AUDIT_ENTRY: dict[str, Shape] = {
    "id": text,
    "at": instant,
    "who": text,
    "what": text,
    "target": text,
    "before": or_null({"tag_value": text}),
    "after": or_null({"tag_value": text}),
}
SNOOZE: dict[str, Shape] = {
    "reason": text,
    "until": or_null(day),
    "created_by": text,
    "created_at": instant,
}
FINDING: dict[str, Shape] = {
    "id": text,
    "kind": one_of(
        "topic_without_traffic", "topic_never_read", "topic_never_written", "idle_resource", "idle_identity"
    ),
    "subject": {"type": text, "id": text, "name": or_null(text), "cluster_id": or_null(text)},
    "owner": or_null(text),
    "tags": map_of(text),
    "since": day,
    "last_active": or_null(day),
    "evidence": {
        "measured_days": number,
        "unmeasured_days": number,
        "last_measured": day,
        "bytes_in": or_null(decimal),
        "bytes_out": or_null(decimal),
    },
    "monthly_cost": decimal,
    "avoidable": one_of("none", "partial", "full"),
    "avoidable_cost": decimal,
    "why": text,
    "confidence": one_of("high", "medium", "low"),
    "action": text,
    "snooze": or_null(SNOOZE),
}
FINDINGS: dict[str, Shape] = {
    "items": [FINDING],
    "total": number,
    "page": number,
    "page_size": number,
    "pages": number,
    "currency": text,
    "snoozed": number,
}
_UNIT_COST: dict[str, Shape] = {
    "amount": decimal,
    "excluded_amount": decimal,
    "usage": or_null(decimal),
    "unit_cost": or_null(decimal),
    "days": number,
    "days_with_usage": number,
}
UNIT_COSTS: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "per": one_of("gib_in", "gib_out", "gib_stored", "topic"),
    "unit": text,
    "covers": text,
    "measures": [text],
    "total": _UNIT_COST,
    "items": [_UNIT_COST | {"dimensions": map_of(or_null(text))}],
    "groups": number,
    "missing_days": [day],
    "names": map_of(map_of(text)),
    "ignored_filters": [text],
}
SERIES: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "timezone": text,
    "currency": text,
    "total": drawn,
    "rows": [{"time": text, "value": or_null(text), "name": text, "amount": drawn}],
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
_BILLED_LINE: dict[str, Shape] = {
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
#: What every explanation of an amount has.
_EXPLAINED: dict[str, Shape] = {
    "sentence": text,
    "date": day,
    "line_id": text,
    "why_nothing": or_null(text),
    "line": or_null(_BILLED_LINE),
    "methods": [{"position": number, "method": text, "applied": flag, "why_not": or_null(text), "candidates": number}],
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
    "visible": or_null({"amount": decimal, "others": decimal}),
    "siblings": {"rows": number, "sum": decimal, "equals_line": or_null(flag)},
    "revision": or_null(number),
    "revisions": [
        {
            "revision": number,
            "calculated_at": instant,
            "cause": text,
            "line_id": or_null(text),
            "amount": or_null(decimal),
        }
    ],
    "recomputed": one_of("same", "different", None),
    "links": {"line": text, "rows": text, "policy": or_null(text), "bill": text, "revisions": text},
}
_CONTEST: dict[str, Shape] = {"measure": or_null(text), "total": or_null(decimal), "contenders_total": number}
_CONTENDER: dict[str, Shape] = {"value": or_null(decimal), "ratio": decimal}
EXPLANATION: dict[str, Shape] = _EXPLAINED | {
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
    "evidence": or_null(
        _CONTEST
        | {
            "contenders": [_CONTENDER | {"identity_id": or_null(text), "name": or_null(text)}],
            "members": number,
            "metrics_available": flag,
        }
    ),
}
_ATTRIBUTION = one_of("bytes_ratio", "retained_bytes_ratio", "even_split", "ATTRIBUTION_FAILED")
TOPIC_EXPLANATION: dict[str, Shape] = _EXPLAINED | {
    "topic_name": text,
    "row": or_null(
        {
            "timestamp": instant,
            "line_id": text,
            "env_id": or_null(text),
            "cluster_resource_id": text,
            "topic_name": text,
            "product_category": text,
            "product_type": text,
            "attribution_method": _ATTRIBUTION,
            "amount": decimal,
            "topic_usage": or_null(decimal),
            "total_usage": or_null(decimal),
        }
    ),
    "attribution_method": or_null(_ATTRIBUTION),
    "evidence": or_null(_CONTEST | {"contenders": [_CONTENDER | {"topic_name": or_null(text)}], "topics": number}),
}
_PART: dict[str, Shape] = {
    "id": lambda value: isinstance(value, str),
    "kind": one_of("organisation", "environment", "resource", "identity", "topic"),
    "value": or_null(text),
    "name": or_null(text),
    "type": or_null(text),
}
_PLACED: dict[str, Shape] = _PART | {
    "parent": or_null(lambda value: isinstance(value, str)),
    "children": number,
    "rows": one_of("chargebacks", "topic-attributions"),
    "filters": lambda value: isinstance(value, dict),
}
GRAPH: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "path": [_PART],
    "nodes": [
        _PLACED | {"amount": decimal, "own": decimal, "other": or_null({"count": number, "amount": decimal})},
    ],
}
_BOTH: dict[str, Shape] = {"before": decimal, "after": decimal, "delta": decimal}
GRAPH_DIFF: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "compared_start_date": or_null(day),
    "compared_end_date": or_null(day),
    "currency": text,
    "path": [_PART],
    "nodes": [
        _PLACED
        | _BOTH
        | {
            "own": _BOTH,
            "state": one_of("same", "changed", "new", "gone"),
            "other": or_null(_BOTH | {"count": number}),
        }
    ],
}
GRAPH_TIMELINE: dict[str, Shape] = {
    "start_date": day,
    "end_date": day,
    "currency": text,
    "path": [_PART],
    "amount": decimal,
    "items": [{"time": day, "amount": decimal}],
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
#: What a sum in another currency has as well.
CONVERSION: dict[str, Shape] = {"conversion": {"billed_currency": text, "rates": map_of(text)}}

_DEFINITION: dict[str, Shape] = {"ColumnName": text, "DataType": one_of("STRING", "JSON", "INTEGER", "DATETIME")}
FOCUS_METADATA: dict[str, Shape] = {
    "DataGenerator": {"DataGenerator": text},
    "DatasetInstance": [
        {"DatasetInstanceId": text, "DatasetInstanceName": text, "FocusDatasetId": one_of("CostAndUsage")}
    ],
    "Recency": [
        {
            "DatasetInstanceId": text,
            "RecencyLastUpdated": instant,
            "DatasetInstanceLastUpdated": instant,
            "TimeSectors": [
                {
                    "TimeSectorStart": instant,
                    "TimeSectorEnd": instant,
                    "TimeSectorComplete": flag,
                    "TimeSectorLastUpdated": instant,
                }
            ],
        }
    ],
    "Schema": [
        {
            "SchemaId": text,
            "FocusVersion": one_of("1.2", "1.4"),
            "CreationDate": instant,
            "DataGeneratorVersion": text,
            "DatasetInstanceId": text,
            "ColumnDefinition": [
                either(
                    _DEFINITION,
                    _DEFINITION | {"StringEncoding": one_of("UTF-8")},
                    {
                        "ColumnName": text,
                        "DataType": one_of("DECIMAL"),
                        "NumericPrecision": number,
                        "NumberScale": number,
                    },
                )
            ],
        }
    ],
}
