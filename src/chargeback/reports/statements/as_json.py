"""Statements as JSON values: amounts are texts, exact and (``rounded``) in cents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chargeback.model.cents import render_cents
from chargeback.model.days import ONE_DAY, render_instant
from chargeback.model.money import render
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.statements.content import (
    CostPerUnit,
    Heading,
    Previous,
    Ranked,
    Ranking,
    Recipient,
    Stated,
    Statement,
    Statements,
    StatementSplit,
    TieOut,
)
from chargeback.store.control.statement_replies import Reply


def statements_json(found: Statements) -> dict[str, Any]:
    """Return all statements of a month: a row for each, and their total."""
    return {
        **heading_json(found.heading),
        "items": [statement_row(each) for each in found.items],
        "total": stated_json(found.total),
        "tie_out": None if found.tie_out is None else _tie_out(found.tie_out),
    }


def statement_json(found: Statements, statement: Statement) -> dict[str, Any]:
    """Return one of the statements of a month, complete."""
    lines = [
        {
            "kind": line.kind,
            "product_category": line.product_category,
            "product_type": line.product_type,
            **stated_json(line.amount),
        }
        for line in statement.lines
    ]
    return {
        **heading_json(found.heading),
        "number": statement.number,
        "supersedes": statement.supersedes,
        "digest": statement.digest,
        "recipient": recipient_json(statement.recipient),
        **stated_json(statement.amount),
        "lines": lines,
        "previous": None if statement.previous is None else _previous(statement.previous),
        "identities": _ranking(statement.identities),
        "resources": _ranking(statement.resources),
        "topics": _ranking(statement.topics),
        "unit_costs": [_cost_per_unit(each) for each in statement.unit_costs],
        "split": _split(statement.split),
        "verdict": statement.verdict,
        "replies": None
        if statement.replies is None
        else [reply_json(each, is_current=statement.is_about(each)) for each in statement.replies],
        "tie_out": None if found.tie_out is None else _tie_out(found.tie_out),
    }


def statement_row(statement: Statement) -> dict[str, Any]:
    """Return a statement as a row of a list."""
    previous = statement.previous
    return {
        "number": statement.number,
        "digest": statement.digest,
        "recipient": recipient_json(statement.recipient),
        **stated_json(statement.amount),
        "previous": None if previous is None else render(previous.amount),
        "delta": None if previous is None else render(previous.delta),
        "verdict": statement.verdict,
    }


def reply_json(reply: Reply, *, is_current: bool) -> dict[str, Any]:
    """Return a reply, and whether the statement still has the content that it was to."""
    return reply.as_json() | {"is_current": is_current}


def heading_json(heading: Heading) -> dict[str, Any]:
    """Return what all statements of a month have in common."""
    return {
        "tenant_name": heading.tenant,
        "by": heading.by,
        "period": heading.period,
        "start_date": heading.days.start,
        "end_date": heading.days.end - ONE_DAY,
        "days": len(heading.days),
        "calculated_days": heading.calculated_days,
        "data_through": heading.data_through,
        "issued_at": None if heading.issued_at is None else render_instant(heading.issued_at),
        "status": heading.status,
        "basis": heading.basis,
        "currency": heading.currency,
        "revision": heading.revision,
        "category_version": heading.category_version,
        "scope": heading.scope,
    }


def stated_json(amount: Stated) -> dict[str, str]:
    """Return an amount, exactly and in cents."""
    return {"amount": render(amount.exact), "rounded": render_cents(amount.cents)}


def recipient_json(recipient: Recipient) -> dict[str, Any]:
    """Return whom a statement is for."""
    return {
        "value": recipient.value,
        "name": recipient.name,
        "path": [{"value": value, "name": name} for value, name in recipient.path],
        "gl": dict(recipient.gl),
        "contacts": list(recipient.contacts),
    }


def _previous(previous: Previous) -> dict[str, Any]:
    return {
        "period": previous.period,
        "amount": render(previous.amount),
        "delta": render(previous.delta),
        "effects": {name: render(amount) for name, amount in previous.effects.items()},
        "sentence": previous.sentence,
    }


def _ranking(ranking: Ranking | None) -> dict[str, Any] | None:
    if ranking is None:
        return None
    return {
        "items": [_ranked(each) for each in ranking.items],
        "other": {"count": ranking.other_count, **stated_json(ranking.other)} if ranking.other_count else None,
        "total": stated_json(ranking.total),
    }


def _ranked(each: Ranked) -> dict[str, Any]:
    return {"id": each.id, "name": each.name, "within": each.within, **stated_json(each.amount)}


def _cost_per_unit(each: CostPerUnit) -> dict[str, str]:
    return {
        "per": each.per,
        "unit": each.unit,
        "amount": render(each.amount),
        "usage": render(each.usage),
        "unit_cost": render(each.cost),
    }


def _split(split: StatementSplit) -> dict[str, Any]:
    return {
        "policies": [
            {
                "product_type": each.product_type,
                "hash": each.policy.hash,
                "portions": [portion.model_dump(mode="json") for portion in PolicyPortion.all_of(each.policy)],
            }
            for each in split.policies
        ],
        "rules": None
        if split.rules is None
        else [{"id": each.id, "reason": each.reason, "amount": render(each.amount)} for each in split.rules],
        "steps": None if split.steps is None else [{"from": each.source, "by": each.by} for each in split.steps],
    }


def _tie_out(tie: TieOut) -> dict[str, Any]:
    parts: Mapping[str, Stated] = {
        "statements": tie.statements,
        "billed": tie.billed,
        "outdated": tie.outdated,
        "pending": tie.pending,
    }
    return {
        "state": tie.state,
        "difference": render(tie.difference),
        **{name: stated_json(amount) for name, amount in parts.items()},
    }
