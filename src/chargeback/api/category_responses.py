"""What a cost category assigns, and what an edit would change, as the API shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from chargeback.categories.resolve import Assignment, RuleName
from chargeback.model.money import difference, render
from chargeback.service.category_answers import Coverage, Moved, Preview
from chargeback.store.control.inventory_lists import IDENTITIES
from chargeback.store.control.names import names_of
from chargeback.store.queries.assignments import share_text


def preview_response(connection: Connection, found: Preview, currency: str) -> dict[str, Any]:
    """Return what an edit would change, as the API shows it."""
    before = found.coverage_before
    unassigned = [*found.coverage_after.top_unassigned, *(() if before is None else before.top_unassigned)]
    names = _names(connection, [*unassigned, *((each.identity_id, each.amount) for each in found.items)])
    analysis = found.analysis
    return {
        "currency": currency,
        "coverage_before": None if before is None else _coverage(before, names),
        "coverage_after": _coverage(found.coverage_after, names),
        "values": [
            {
                "value": value,
                "before": render(earlier),
                "after": render(later),
                "difference": render(difference(later, earlier)),
            }
            for value, earlier, later in found.values
        ],
        "moved": [_moved(each) for each in found.moved],
        "items": [
            {"identity_id": each.identity_id, "display_name": names.get(each.identity_id or ""), **_moved(each)}
            for each in found.items
        ],
        "never_matching": [{"rule": _rule(each.rule), "why": each.why} for each in analysis.never_matching],
        "shadowed": [{"rule": _rule(each.rule), "by": [_rule(by) for by in each.by]} for each in analysis.shadowed],
        "overlaps": [
            {"winner": _rule(each.winner), "loser": _rule(each.loser), "subjects": each.subjects}
            for each in analysis.overlaps
        ],
        "unknown_values": [{"value": each.value, "rule": _rule(each.rule)} for each in analysis.unknown_values],
    }


def assigned_response(found: Assignment) -> dict[str, Any]:
    """Return what one subject is assigned."""
    total = sum(weight for _, weight in found.parts)
    parts = [
        {"value": value, "category_share": share_text(weight, total), "path": list(path)}
        for (value, weight), path in zip(found.parts, found.paths, strict=True)
    ]
    one: dict[str, Any] = parts[0] if len(parts) == 1 else {"value": None, "path": []}
    return {
        "value": one["value"],
        "path": one["path"],
        "parts": parts,
        "rule": _rule(found.rule),
        "reason": None if found.rule is None else found.rule.reason,
        "lost": [_rule(each) for each in found.lost],
    }


def _rule(rule: RuleName | None) -> dict[str, Any] | None:
    return None if rule is None else {"index": rule.index, "id": rule.id, "reason": rule.reason}


def coverage_response(connection: Connection, found: Coverage) -> dict[str, Any]:
    """Return how much is assigned."""
    return _coverage(found, _names(connection, found.top_unassigned))


def _coverage(found: Coverage, names: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "assigned": render(found.assigned),
        "unassigned": render(found.unassigned),
        "percent": None if found.percent is None else f"{found.percent:f}",
        "by_rule": [
            {"rule": _rule(each.rule), "value": each.value, "amount": render(each.amount)} for each in found.by_rule
        ],
        "top_unassigned": [
            {"identity_id": identity, "display_name": names.get(identity), "amount": render(amount)}
            for identity, amount in found.top_unassigned
        ],
    }


def _moved(each: Moved) -> dict[str, str]:
    return {"before": each.before, "after": each.after, "amount": render(each.amount)}


def _names(connection: Connection, costs: Iterable[tuple[str | None, object]]) -> dict[str, str | None]:
    """Return the display names of identities."""
    ids = {identity for identity, _ in costs if identity is not None}
    return {identity: each.name for identity, each in names_of(connection, IDENTITIES, ids).items()}
