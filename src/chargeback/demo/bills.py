"""Billing lines in the provider's JSON shape (billing/v1), and in shapes from before that was published."""

from __future__ import annotations

from datetime import date, timedelta

from chargeback.demo.lines import EXACT, Line
from chargeback.demo.shapes import Json


def cost(line: Line, day: date, row_id: str) -> Json:
    """billing/v1 Cost. Fields without value are omitted: the provider's schema does not allow null in them."""
    original, discount = line.original_amount, line.discount_amount
    row: Json = {
        "api_version": "billing/v1",
        "kind": "Cost",
        "id": row_id,
        "start_date": day.isoformat(),
        "end_date": (day + timedelta(days=1)).isoformat(),
        "granularity": "DAILY",
        "network_access_type": line.access,
        "product": line.product,
        "line_type": line.line_type,
        "price": line.price,
        "unit": line.unit,
        "quantity": line.quantity,
        "original_amount": original,
        "discount_amount": discount,
        "amount": EXACT.subtract(original, discount),
        "description": line.description,
        "tier_dimensions": dict(line.tier) if line.tier else None,
    }
    if line.line_type == "SUPPORT":
        del row["discount_amount"]
    if line.resource is not None:
        row["resource"] = {
            "id": line.resource.id,
            "display_name": line.resource.name,
            "environment": None if line.resource.environment is None else {"id": line.resource.environment},
        }
    return {name: value for name, value in row.items() if value is not None}


def legacy_cost(row: Json, index: int) -> Json:
    """Return the same row in shapes that occur in practice although the published schema does not allow them.

    Missing ids, a text in place of ``resource.environment`` with the id at the top, times after dates, nulls for values
    that a credit lacks, line types in the singular. The shape of a row depends on its position in the day.
    """
    row = dict(row)
    resource = row.get("resource")
    if index % 3 == 0 and resource is not None and resource["environment"] is not None:
        environment = resource["environment"]["id"]
        row |= {"environment": {"id": environment}, "resource": {**resource, "environment": environment}}
    if index % 4 == 1:
        del row["id"]
    if index % 5 == 2:
        row |= {"start_date": f"{row['start_date']} 00:00:00", "end_date": f"{row['end_date']} 00:00:00"}
    if row["line_type"] in ("KAFKA_NUM_CKUS", "KSQL_NUM_CSUS", "FLINK_NUM_CFUS"):
        row["line_type"] = row["line_type"][:-1]
    if "price" not in row:
        product = "SUPPORT_PREMIER" if row["line_type"] == "SUPPORT" else None
        row |= {"product": product, "unit": None, "price": None, "quantity": None, "resource": None}
    return row
