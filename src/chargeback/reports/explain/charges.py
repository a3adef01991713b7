"""An explanation as the front ends show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.allocation.explain import OTHERS, Arithmetic, ExplainedPortion, Participant, UsageSplit
from chargeback.model.days import render_instant
from chargeback.model.money import render
from chargeback.recompute.explain import Explanation
from chargeback.recompute.stored_day import Explained
from chargeback.reports.explain.links import links
from chargeback.reports.explain.sentence import sentence
from chargeback.reports.explain.visible import VisiblePart
from chargeback.reports.policies import policy_json
from chargeback.reports.wording import Names, money_text, rounded
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.control.names import names_of
from chargeback.store.queries.paging import Page

_ROW_COLUMNS: Final = (
    *("line_id", "portion", "identity_id", "resource_id", "product_category", "product_type", "cost_type"),
    *("allocation_method", "allocation_detail", "chain_position", "policy_hash"),
)
_LINE_COLUMNS: Final = (
    *("line_id", "resource_id", "product_category", "product_type", "currency", "granularity", "unit", "description"),
)


#: The participants that are listed unless a request says otherwise: the largest.
USUAL_CONTENDERS: Final = Page(0, 20)


def names_of_explanation(
    connection: Connection,
    found: Explanation,
    page: Page = USUAL_CONTENDERS,
) -> Names:
    """Return the names of everything that an explanation mentions, if it lists a page of its participants."""
    usage_split = found.portion.usage_split if found.portion else None
    listed = listed_participants(usage_split, found.key.identity_id, page) if usage_split else ()
    identities = {found.key.identity_id, *(each.identity_id for each in listed)}
    resources = {found.billed["resource_id"]} if found.billed else set()
    named = {id_: each.name for id_, each in names_of(connection, RESOURCES, resources).items() if each.name}
    if found.line is not None and found.line["resource_name"]:
        named = {found.line["resource_id"]: found.line["resource_name"]} | named
    return Names(
        {id_: each.name for id_, each in names_of(connection, IDENTITIES, identities).items() if each.name}, named
    )


def listed_participants(usage_split: UsageSplit, asked: str, page: Page) -> Sequence[Participant]:
    """Return a page of the participants, and, if they are not on it, the one that was asked for and others together."""
    listed = usage_split.participants[page.offset : page.offset + page.limit]
    always = (each for each in usage_split.participants if each.identity_id in {asked, OTHERS})
    return (*listed, *(each for each in always if each not in listed))


def explanation_json(
    found: Explanation,
    names: Names,
    currency: str,
    page: Page = USUAL_CONTENDERS,
    part: VisiblePart | None = None,
) -> dict[str, Any]:
    """Return an explanation as the API shows it, with a page of its participants; ``part`` is what is visible of the
    row, if not all of it is."""
    row, portion, key = found.row, found.portion, found.key
    usage_split = None if portion is None else portion.usage_split
    return {
        "sentence": f"{sentence(found, names, currency)}{part_sentence(found, part, currency)}",
        "date": found.key.day,
        "line_id": found.key.line_id,
        "identity_id": found.key.identity_id,
        "identity_name": names.identities.get(found.key.identity_id),
        "row": None if row is None else _row(row),
        "why_nothing": found.unknown if portion is None else portion.why_nothing,
        "line": None if found.line is None else line_json(found.line, names.resources),
        "policy": None
        if found.policy is None
        else {
            "product_type": found.policy.product_type,
            "matched": found.policy.matched,
            "hash": found.policy.policy.hash,
            "source": found.policy.source,
            "portions": policy_json(found.policy.policy),
        },
        **calculation_json(portion),
        "evidence": None if usage_split is None else _evidence(usage_split, key.identity_id, names.identities, page),
        "evidence_missing": found.missing,
        **stored_json(found, part),
        "links": links(
            key.day,
            key.line_id,
            key.as_of,
            rows="chargebacks",
            policy=None if found.policy is None else found.policy.policy.hash,
        ),
    }


def part_sentence(found: Explained, part: VisiblePart | None, currency: str) -> str:
    """Return what the sentence of a calculation has to add where a ``part`` of the row is visible."""
    if part is None or found.portion is None:
        return ""
    return f" Of this, a cost category gives {money_text(part.amount, currency)} to what you see."


def stored_json(found: Explained, part: VisiblePart | None = None) -> dict[str, Any]:
    """Return what is stored beside the amount: the visible ``part`` of the row, if not all is visible, the rows of the
    line, the revisions, and whether they agree."""
    return {
        "visible": None if part is None else {"amount": render(part.amount), "others": render(part.others)},
        "siblings": {
            "rows": found.siblings.rows,
            "sum": render(found.siblings.sum),
            "equals_line": found.siblings.equals_line,
        },
        "revision": found.revision,
        "revisions": [
            {
                "revision": each.revision.revision,
                "calculated_at": render_instant(each.revision.calculated_at),
                "cause": each.revision.cause,
                "line_id": each.line_id,
                "amount": None if each.amount is None else render(each.amount),
            }
            for each in found.revisions
        ],
        "recomputed": None if found.is_same is None else "same" if found.is_same else "different",
    }


def calculation_json(portion: ExplainedPortion | None) -> dict[str, Any]:
    """Return the calculation of a portion, without its evidence."""
    if portion is None:
        return {"portion": None, "methods": [], "arithmetic": None}
    return {
        "portion": {"number": portion.number, "share": render(portion.share), "amount": render(portion.amount)},
        "methods": [
            {
                "position": each.position,
                "method": str(each.method),
                "applied": each.applied,
                "why_not": each.why_not,
                "candidates": each.candidates,
            }
            for each in portion.methods
        ],
        "arithmetic": None if portion.arithmetic is None else arithmetic_json(portion.arithmetic),
    }


def arithmetic_json(arithmetic: Arithmetic) -> dict[str, Any]:
    """Return how an amount follows from a portion."""
    return {
        "exact": f"{arithmetic.exact.numerator}/{arithmetic.exact.denominator}",
        "units_floor": str(arithmetic.units_floor),
        "spare_units": arithmetic.spare_units,
        "remainder_rank": arithmetic.remainder_rank,
        "extra_unit": arithmetic.extra_unit,
        "amount": render(arithmetic.amount),
    }


def contest_json(
    usage_split: UsageSplit, asked: str, page: Page, named: Callable[[str | None], Mapping[str, str | None]]
) -> dict[str, Any]:
    """Return what decided a portion, with a page of the participants; ``named`` gives how one, or others together
    (None), are named in JSON."""
    return {
        "measure": usage_split.measure,
        "total": None if usage_split.total is None else render(usage_split.total),
        "contenders": [
            {
                **named(None if each.identity_id == OTHERS else each.identity_id),
                "value": None if each.value is None else render(each.value),
                "ratio": render(rounded(each.ratio, 6)),
            }
            for each in listed_participants(usage_split, asked, page)
        ],
        "contenders_total": len(usage_split.participants),
    }


def _evidence(usage_split: UsageSplit, asked: str, names: Mapping[str, str], page: Page) -> dict[str, Any]:
    return {
        **contest_json(usage_split, asked, page, lambda id_: {"identity_id": id_, "name": names.get(id_ or "")}),
        "members": usage_split.members,
        "metrics_available": usage_split.metrics_available,
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: row[name] for name in _ROW_COLUMNS}
    amounts = ("amount", "portion_share", "identity_usage", "total_usage")
    return {
        "timestamp": render_instant(row["timestamp"]),
        **shown,
        **{name: None if row[name] is None else render(row[name]) for name in amounts},
    }


def line_json(line: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a billing line; ``names`` are those of resources."""
    amounts = ("quantity", "unit_price", "total_cost")
    return {
        "timestamp": render_instant(line["timestamp"]),
        **{name: line[name] for name in _LINE_COLUMNS},
        "resource_name": names.get(line["resource_id"]) or line["resource_name"],
        **{name: None if line[name] is None else render(line[name]) for name in amounts},
    }
