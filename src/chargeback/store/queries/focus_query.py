"""The query of the FOCUS rows of one day: its lines beside their shares, with prices and quantities shared exactly.

It reads ``focus_lines`` (the lines of the day), ``focus_shares`` (who has which part of them), the tags of the day and
the tables of :func:`~chargeback.store.queries.focus_lookups.lookup_tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chargeback.model.focus import UNITS
from chargeback.store.queries.focus_sharing import decimal_of, divisor, positions, shared, units_of
from chargeback.store.queries.sql_format import named

#: Whether a line has a price and a quantity, of which a share fits 18 places; without, it is one unit at its whole
#: price.
_IS_PRICED: Final = "unit_price IS NOT NULL AND quantity IS NOT NULL AND abs(quantity) < 100000000000000000000"
_WHOLE_PRICE: Final = "coalesce(original_amount, total_cost)"
#: A refund is a negative quantity at a positive price, wherever the provider has put the sign.
_SIGN: Final = "CASE WHEN coalesce(nullif(original_amount, 0), total_cost) < 0 THEN -1 ELSE 1 END"
#: The list cost in 10⁻¹², rounded half up: price and quantity have twelve places each.
_PRODUCT: Final = f"(abs({units_of('unit_price')}) * abs({units_of('quantity')}) + 500000000000) // 1000000000000"
_ONE: Final = f"1{'0' * 18}::HUGEINT"

#: What is calculated for each line: numbers without a unit are whole numbers, of 10⁻¹² or 10⁻¹⁸. Of a credit only the
#: amount is known.
_PRICES: Final = {
    "list_units": f"CASE WHEN NOT is_credit THEN CASE WHEN {_IS_PRICED} THEN {_SIGN} * ({_PRODUCT}) "
    f"ELSE {units_of(_WHOLE_PRICE)} END END",
    "quantity_units": f"CASE WHEN NOT is_credit THEN {_SIGN} * CASE WHEN {_IS_PRICED} "
    f"THEN abs({units_of('quantity')}) * 1000000 ELSE {_ONE} END END",
    "list_unit_price": f"CASE WHEN NOT is_credit THEN abs(CASE WHEN {_IS_PRICED} THEN unit_price "
    f"ELSE {_WHOLE_PRICE} END) END",
    "pricing_unit": f"CASE WHEN {_IS_PRICED} THEN coalesce(focus_unit, '{UNITS}') ELSE '{UNITS}' END",
}
_DIVISOR: Final = divisor("list_units", "quantity_units")
#: What is calculated for each share.
_SHARED: Final = {
    "list_cost": f"CASE WHEN is_credit THEN amount ELSE {decimal_of(shared('list_units', _DIVISOR), 12)} END",
    "quantity": decimal_of(shared("quantity_units", _DIVISOR), 18),
    "ratio": decimal_of(shared(_ONE, divisor(_ONE)), 18),
    "usage_unit": "coalesce(placed.usage_unit, measure.unit)",
    "payer_name": "CASE WHEN payer_id IS NOT NULL THEN coalesce(placed.payer_name, named.name, payer_id) END",
}


def category_columns(keys: Sequence[str]) -> list[str]:
    """Return the columns of shares with the values of cost categories."""
    return [f"category_{place}" for place in range(len(keys))]


def focus_query(fields: str, categories: Sequence[str]) -> str:
    """Return the query of ``fields`` (SQL over what :mod:`~chargeback.store.queries.focus_columns` describes), in the
    order of lines, portions and payers. ``categories`` are the keys of the tenant's cost categories."""
    shares = f"(SELECT *, {units_of('amount')} AS units FROM focus_shares)"
    order = ["portion", "payer", *category_columns(categories)]
    return f"""
        WITH lines AS (
            SELECT *, {named(_PRICES)} FROM (
                SELECT bill.*, product.is_credit, units.focus_unit FROM focus_lines AS bill
                JOIN focus_products AS product ON product.category = product_category AND product.type = product_type
                LEFT JOIN focus_units AS units ON units.unit = bill.unit)
        ), shares AS (
            SELECT placed.* EXCLUDE (usage_unit, payer_name), {named(_SHARED)}
            FROM ({positions(shares, order)}) AS placed
            JOIN lines ON lines.line_id = placed.line_id
            LEFT JOIN focus_measures AS measure ON measure.policy_hash = placed.policy_hash
                AND measure.portion = placed.portion AND measure.chain_position = placed.chain_position
            LEFT JOIN focus_payers AS named ON named.id = payer_id
        )
        SELECT {fields}
        FROM lines AS line JOIN shares AS share ON share.line_id = line.line_id
        JOIN focus_products AS product
            ON product.category = line.product_category AND product.type = line.product_type
        CROSS JOIN focus_account AS account
        LEFT JOIN focus_resources AS resource ON resource.id = line.resource_id
        LEFT JOIN focus_resources AS environment ON environment.id = line.environment_id
        LEFT JOIN focus_payers AS payer ON payer.id = share.payer_id
        LEFT JOIN focus_tags AS its ON its.id = line.resource_id
        LEFT JOIN focus_payer_tags AS theirs ON theirs.id = share.payer
        ORDER BY line.timestamp, line.resource_id, line.product_type, line.line_id, share.place"""
