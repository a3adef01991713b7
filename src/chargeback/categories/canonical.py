"""The canonical form of a cost category: the plain data that is stored and exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chargeback.categories.document import (
    EVERY_VALUE,
    CategoryValue,
    Constant,
    CostCategory,
    FromTag,
    Handover,
    Rule,
    Split,
    Template,
)
from chargeback.categories.matching import All, AnyOf, Match, Not, Pattern
from chargeback.categories.reading import plain
from chargeback.categories.reading_matches import is_wild
from chargeback.model.dated import FOREVER, DatedValue, Period


def to_document(category: CostCategory) -> dict[str, Any]:
    """Return the document of a category, for YAML or JSON: dates are texts, absent keys are left out, values and
    percentages are in ascending order of their names. Parsing it gives the same category."""
    document: dict[str, Any] = {"default": category.default}
    if category.values:
        document["values"] = {value.key: _value(value) for value in category.values}
    if category.sets:
        document["sets"] = {name: _pattern(pattern) for name, pattern in category.sets}
    document["rules"] = [_rule(rule) for rule in category.rules]
    if category.share:
        document["share"] = [_step(step) for step in category.share]
    return document


def _value(value: CategoryValue) -> dict[str, Any]:
    fields = {
        "name": value.name,
        "parent": _dated(value.parent),
        "gl": {name: _dated(ids) for name, ids in value.gl},
        "contacts": list(value.contacts),
        **_dates(value.during),
    }
    return {name: field for name, field in fields.items() if field}


def _dated(values: Sequence[DatedValue]) -> str | list[dict[str, str]]:
    """Return a text if it always holds."""
    if len(values) == 1 and values[0].during == FOREVER:
        return values[0].value
    return [{"value": each.value, **_dates(each.during)} for each in values]


def _rule(rule: Rule) -> dict[str, Any]:
    fields = {
        "id": rule.id,
        "match": _match(rule.match),
        **_assignment(rule),
        **_dates(rule.during),
        "reason": rule.reason,
    }
    return {name: field for name, field in fields.items() if field}


def _assignment(rule: Rule) -> dict[str, Any]:
    match rule.assign:
        case Constant(value):
            return {"assign": value}
        case FromTag(key):
            return {"assign": {"from_tag": key}}
        case Template():
            return {"assign": str(rule.assign)}
        case Split(percentages):
            return {"split": {value: plain(percentage) for value, percentage in percentages}}


def _dates(during: Period) -> dict[str, str]:
    days = {"valid_from": during.first, "valid_to": during.end}
    return {name: day.isoformat() for name, day in days.items() if day is not None}


def _match(match: Match) -> dict[str, Any]:
    if isinstance(match, All | AnyOf):
        return {"all" if isinstance(match, All) else "any": [_match(each) for each in match.matches]}
    if isinstance(match, Not):
        return {"not": _match(match.match)}
    pattern = {} if match.pattern is None else {"value": _pattern(match.pattern)}
    return {"tag": {"key": match.tag, **pattern}} if match.tag is not None else {match.subject: pattern["value"]}


def _pattern(pattern: Pattern) -> list[str] | Mapping[str, list[str] | str]:
    """Return a plain list where that means the same: of globs, and of exact texts that are none."""
    if pattern.named is not None:
        return {"set": pattern.named}
    texts = [text for _, text in pattern.alternatives]
    if all(kind == "glob" or (kind == "exact" and not is_wild(text)) for kind, text in pattern.alternatives):
        return texts
    return {pattern.alternatives[0][0]: texts}


def _step(step: Handover) -> dict[str, Any]:
    fees = {"monthly": {value: _dated(amounts) for value, amounts in step.fees}} if step.fees else {}
    if step.by is None:
        return {"from": step.source, **fees}
    if step.by == "fixed":
        fixed = {value: plain(part) for value, part in step.percentages}
        return {"from": step.source, "by": {"fixed": fixed}, **fees}
    targets = EVERY_VALUE if step.targets is None else list(step.targets)
    by = f"usage({step.metric})" if step.by == "usage" else step.by
    return {"from": step.source, "to": targets, "by": by, **fees}
