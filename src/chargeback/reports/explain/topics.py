"""An explanation of a topic row as the front ends show it: its JSON, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.allocation.explain import OTHERS, ExplainedPortion, UsageSplit
from chargeback.allocation.methods import EVEN_ACTIVE, UNALLOCATED, AllocationMethod, MethodKind
from chargeback.model.days import render_instant
from chargeback.model.money import render
from chargeback.model.topics import UNATTRIBUTED
from chargeback.recompute.explain_topic import TopicExplanation
from chargeback.reports.explain.charges import (
    USUAL_CONTENDERS,
    calculation_json,
    contest_json,
    line_json,
    part_sentence,
    stored_json,
)
from chargeback.reports.explain.links import links
from chargeback.reports.explain.sentence import fallback
from chargeback.reports.explain.visible import VisiblePart
from chargeback.reports.wording import calendar_day, measured, money_text
from chargeback.store.control.inventory_lists import RESOURCES
from chargeback.store.control.names import names_of
from chargeback.store.queries.paging import Page

_METHODS: Final = {EVEN_ACTIVE: "even(topics)", UNALLOCATED: "unattributed"}
#: What happened to the bytes of a topic, by the measures.
_VERBS: Final[Mapping[tuple[str, ...], str]] = {
    ("topic_bytes_in",): "received",
    ("topic_bytes_out",): "sent",
    ("topic_retained_bytes",): "retained",
}
_COLUMNS: Final = (
    *("line_id", "env_id", "cluster_resource_id", "topic_name", "product_category", "product_type"),
    "attribution_method",
)
_AMOUNTS: Final = ("amount", "topic_usage", "total_usage")


def cluster_names(connection: Connection, found: TopicExplanation) -> dict[str, str]:
    """Return the display name of the cluster of an explanation by its id, if it is known."""
    clusters = [each for each in (_cluster(found),) if each is not None]
    of_bill = {} if found.line is None else {found.line["resource_id"]: found.line["resource_name"]}
    named = names_of(connection, RESOURCES, clusters)
    return {id_: name for id_ in clusters if (name := (named[id_].name if id_ in named else None) or of_bill.get(id_))}


def topic_explanation_json(
    found: TopicExplanation,
    names: Mapping[str, str],
    currency: str,
    page: Page = USUAL_CONTENDERS,
    part: VisiblePart | None = None,
) -> dict[str, Any]:
    """Return an explanation as the API shows it, with a page of its topics. ``names`` are those of clusters, ``part``
    is what is visible of the row, if not all of it is."""
    row, portion, key = found.row, found.portion, found.key
    usage_split = None if portion is None else portion.usage_split
    calculated = calculation_json(portion)
    applied = [] if portion is None else [_method(each.method) for each in portion.methods]
    return {
        "sentence": f"{topic_sentence(found, names, currency)}{part_sentence(found, part, currency)}",
        "date": key.day,
        "line_id": key.line_id,
        "topic_name": key.topic_name,
        "row": None if row is None else _row(row),
        "why_nothing": None if portion is None else portion.why_nothing,
        "line": None if found.line is None else line_json(found.line, names),
        "attribution_method": found.method,
        "methods": [each | {"method": name} for each, name in zip(calculated["methods"], applied, strict=True)],
        "evidence": None if usage_split is None else _evidence(usage_split, key.topic_name, page),
        "evidence_missing": found.missing,
        "arithmetic": calculated["arithmetic"],
        **stored_json(found, part),
        "links": links(key.day, key.line_id, key.as_of, rows="topic-attributions"),
    }


def _evidence(usage_split: UsageSplit, asked: str, page: Page) -> dict[str, Any]:
    return contest_json(usage_split, asked, page, lambda topic: {"topic_name": topic}) | {"topics": usage_split.members}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "timestamp": render_instant(row["timestamp"]),
        **{name: row[name] for name in _COLUMNS},
        **{name: None if row[name] is None else render(row[name]) for name in _AMOUNTS},
    }


def _method(method: AllocationMethod) -> str:
    return _METHODS.get(method, str(method))


def _cluster(found: TopicExplanation) -> str | None:
    if found.billed is None:
        return None
    cluster: str = found.billed["resource_id" if found.line is not None else "cluster_resource_id"]
    return cluster


def topic_sentence(found: TopicExplanation, names: Mapping[str, str], currency: str) -> str:
    """Return what an explanation says, for people who do not know the service."""
    cluster, day, portion = _cluster(found) or "", calendar_day(found.key.day), found.portion
    topic = "No topic" if found.key.topic_name == UNATTRIBUTED else f"Topic {found.key.topic_name}"
    where = names.get(cluster, cluster)
    if portion is None or found.line is None:
        has = "nothing" if found.row is None else money_text(found.row["amount"], currency)
        return (
            f"Topic {found.key.topic_name} has {has} of {_line_text(found, where)} on {day}. "
            f"How is not known: {found.missing}."
        )
    applied, usage_split, mine = portion.applied, portion.usage_split, None
    if usage_split is not None:
        mine = usage_split.participant(found.key.topic_name)
    if applied is None or usage_split is None or mine is None:
        return f"{topic} has nothing of {where} on {day}: {portion.why_nothing}."
    if applied.method.kind is MethodKind.UNALLOCATED:
        reasons = "; ".join(dict.fromkeys(each.why_not for each in portion.methods if each.why_not))
        did = f"No topic of {where} could be found on {day}: {reasons}"
    elif mine.value is not None and usage_split.total is not None:
        verb = _VERBS.get(applied.method.arguments, "used")
        did = f"{topic} {measured(applied.method, mine.value, usage_split.total, verb)} on {where} on {day}"
    elif len(usage_split.participants) == 1:
        did = f"{topic} was the only topic of {where} on {day}"
    else:
        count = "several" if usage_split.participant(OTHERS) else len(usage_split.participants)
        did = f"{topic} was one of {count} topics of {where} on {day}"
    return f"{did}. {_split(found, portion, applied.method, currency)}"


def _split(found: TopicExplanation, portion: ExplainedPortion, method: AllocationMethod, currency: str) -> str:
    """Return how the amount follows from the line."""
    line = f"The {(found.line or {})['product_type']} line of {money_text(portion.amount, currency)}"
    amount = None if portion.arithmetic is None else portion.arithmetic.amount
    part = f"{money_text(amount, currency) if amount else 'nothing'} for {found.key.topic_name}"
    if method.kind is MethodKind.UNALLOCATED:
        return f"{line} is attributed to no topic: {part}."
    how = f"follows {method.measured}" if method.kind is MethodKind.USAGE else "is shared evenly"
    return f"{line} {how}{fallback(portion)}: {part}."


def _line_text(found: TopicExplanation, cluster: str) -> str:
    if found.billed is None:
        return f"line {found.key.line_id}"
    return f"the {found.billed['product_type']} line of {cluster}"
