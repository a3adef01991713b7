"""The meaning of a cost category's document, evaluated row by row, slowly, without the code under test."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from chargeback.model.dated import DatedValue
from tests.support.categories import SomeNames, SomeTags

Shares = dict[str, Fraction]

COLUMNS = {"topic": "topic_name", "product_type": "product_type", "product_category": "product_category"}


#: Words that stand for no value.
NO_VALUES = ("UNASSIGNED", "UNTAGGED", "UNALLOCATED")


def some(text: str | None) -> str:
    """Return a captured text, or NUL if it is missing or stands for no value."""
    return "\0" if not text or text in NO_VALUES else text


class Naive:
    """A document, with the tags and names that its rules use."""

    def __init__(self, document: dict[str, Any], tags: SomeTags, names: SomeNames) -> None:
        self.default = document["default"]
        self.values = document.get("values", {})
        self.rules = document["rules"]
        self.share = document.get("share", [])
        self.tags, self.names = tags.values, names.values

    def applying(self, row: Mapping[str, Any], day: date) -> list[tuple[int, dict[str, Fraction]]]:
        """Return (rule, shares of the values) of all rules that apply, the deciding one first."""
        found = ((place, self._assigned(rule, row, day)) for place, rule in enumerate(self.rules))
        return [(place, shares) for place, shares in found if shares is not None]

    def decided(self, row: Mapping[str, Any], day: date) -> tuple[int | None, dict[str, Fraction]]:
        """Return the deciding rule, and the shares of the values."""
        return next(iter(self.applying(row, day)), (None, {self.default: Fraction(1)}))

    def _assigned(self, rule: dict[str, Any], row: Mapping[str, Any], day: date) -> dict[str, Fraction] | None:
        captured = self._match(rule["match"], row, day)
        if captured is None or not valid(rule, day):
            return None
        assign: Any = rule.get("assign")
        if "split" in rule:
            shares = {value: Fraction(percentage) / 100 for value, percentage in rule["split"].items()}
        elif isinstance(assign, dict):
            shares = {value: Fraction(1) for value in self._tag(assign["from_tag"], row, day) if value not in NO_VALUES}
        else:
            made = re.sub(r"\$\{(\w+)\}", lambda group: some(captured.get(group[1])), assign)
            shares = {} if "\0" in made or (made in NO_VALUES and "${" in assign) else {made: Fraction(1)}
        known = all(self._may_be(value) and valid(self.values.get(value, {}), day) for value in shares)
        return shares if shares and known else None

    def _may_be(self, value: str) -> bool:
        if self.values:
            return value in self.values or value == self.default
        return value == self.default or value != "UNASSIGNED"

    def _match(self, match: dict[str, Any], row: Mapping[str, Any], day: date) -> dict[str, str] | None:
        """Return what is captured where the match holds, else None."""
        ((kind, inner),) = match.items()
        if kind == "not":
            return {} if self._match(inner, row, day) is None else None
        if kind in {"all", "any"}:
            found = [self._match(each, row, day) for each in inner]
            if (None in found) if kind == "all" else all(each is None for each in found):
                return None
            return first_of(each for each in found if each is not None)
        texts = self._texts(kind, inner, row, day)
        pattern = inner.get("value", {"glob": "*"}) if kind == "tag" else inner
        found = [each for text in texts if (each := matched(pattern, text)) is not None]
        return first_of(each for each in found if each is not None) if found else None

    def _texts(self, kind: str, inner: Any, row: Mapping[str, Any], day: date) -> list[str]:
        if kind == "tag":
            return self._tag(inner["key"], row, day)
        if kind == "display_name":
            ids = [(each, row[f"{each}_id"]) for each in ("identity", "resource")]
            return [self.names[each] for each in ids if each in self.names]
        if kind == "cluster":
            return [found] if (found := self.names.get((kind, row["resource_id"]))) else []
        text = row[COLUMNS.get(kind, f"{kind}_id")]
        return [] if text is None else [text]

    def _tag(self, key: str, row: Mapping[str, Any], day: date) -> list[str]:
        for kind in ("identity", "resource"):
            values: Iterable[DatedValue] = self.tags.get((kind, row[f"{kind}_id"], key), ())
            for value in values:
                if day in value.during:
                    return [value.value]
        return []

    def steps(
        self, held: Mapping[str, int], usage: Mapping[str, Mapping[str, int]], day: date
    ) -> list[tuple[str, dict[str, Fraction]]]:
        """Return (source, the part of each target) for every step of a day; intermediate amounts are whole units."""
        holds, gone, steps = dict(held), [], []
        for step in self.share:
            source, by = step["from"], step.get("by")
            gone.append(source)
            if source not in holds:
                continue
            to = list(by["fixed"]) if isinstance(by, dict) else step.get("to", [])
            if to == "*":
                to = [value for value in holds if holds[value] != 0 and value not in [*gone, self.default]]
            to = [value for value in to if valid(self.values.get(value, {}), day)]
            weight = {value: Fraction(self._weight(by, value, holds, usage)) for value in to}
            whole = sum(each for each in weight.values() if each > 0)
            parts = {value: each / whole for value, each in weight.items() if each > 0}
            parts = self._with_fees(step, parts, holds[source], day)
            if not parts:
                continue
            for value, units in largest_remainder(holds.pop(source), parts).items():
                holds[value] = holds.get(value, 0) + units
            steps.append((source, parts))
        return steps

    def _with_fees(self, step: dict[str, Any], parts: Shares, held: int, day: date) -> Shares:
        """Return the parts of a step after monthly fees, of which each day pays its part."""
        fees = {}
        for value, amounts in step.get("monthly", {}).items():
            dated = amounts if isinstance(amounts, list) else [{"value": amounts}]
            (month,) = [Fraction(each["value"]) for each in dated if valid(each, day)] or [Fraction(0)]
            if month and valid(self.values.get(value, {}), day):
                first, next_month = day.replace(day=1), (day.replace(day=28) + timedelta(4)).replace(day=1)
                before, after = ((month * 10**12 * n) // (next_month - first).days for n in (day.day - 1, day.day))
                fees[value] = Fraction(after - before)
        if not fees or held <= 0:
            return parts
        if (paid := sum(fees.values(), Fraction(0))) >= held:
            return {value: fee / paid for value, fee in fees.items() if fee}
        parts = parts or {step["from"]: Fraction(1)}
        rest = 1 - paid / held
        both = {value: Fraction(fees.get(value, 0)) / held + parts.get(value, 0) * rest for value in {*fees, *parts}}
        return {value: part for value, part in both.items() if part}

    def path(self, value: str, day: date) -> list[str]:
        """Return a value and all its parents on a day."""
        parents = self.values.get(value, {}).get("parent", [])
        dated = parents if isinstance(parents, list) else [{"value": parents}]
        above = [each["value"] for each in dated if valid(each, day)]
        return [value, *(self.path(above[0], day) if above else [])]

    def _weight(
        self, by: Any, value: str, holds: Mapping[str, int], usage: Mapping[str, Mapping[str, int]]
    ) -> Fraction | int:
        if isinstance(by, dict):
            return Fraction(by["fixed"][value])
        if by == "even":
            return 1
        return holds.get(value, 0) if by == "proportional" else usage.get(by[6:-1], {}).get(value, 0)


def handed(steps: Sequence[tuple[str, Mapping[str, Fraction]]], place: int) -> tuple[Shares, Shares]:
    """Return the parts of the source's cost that each value has after all later steps, and the parts that values passed
    on."""
    remaining, passed = dict(steps[place][1]), {}
    for source, parts in steps[place + 1 :]:
        if source in remaining:
            came = remaining.pop(source)
            passed[source] = came * (1 - parts.get(source, 0))
            for value, part in parts.items():
                remaining[value] = remaining.get(value, Fraction(0)) + came * part
    return remaining, passed


def weights_of_day(steps: Sequence[tuple[str, Mapping[str, Fraction]]]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return by source and value: the part of 10¹² that remains with the value, and the part that it passed on."""
    found = {}
    for place, (source, _) in enumerate(steps):
        remaining, passed = handed(steps, place)
        weights = largest_remainder(10**12, remaining)
        both = {value: (weights.get(value, 0), int(passed.get(value, 0) * 10**12)) for value in {*weights, *passed}}
        found[source] = {value: parts for value, parts in both.items() if any(parts)}
    return found


def largest_remainder(units: int, shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Split units by shares that sum to 1."""
    exact = {value: abs(units) * share for value, share in shares.items()}
    split = {value: int(each) for value, each in exact.items()}
    for value in sorted(exact, key=lambda each: (split[each] - exact[each], each))[: abs(units) - sum(split.values())]:
        split[value] += 1
    return {value: each if units > 0 else -each for value, each in split.items()}


def first_of(captured: Iterable[dict[str, str]]) -> dict[str, str]:
    """Return the first capture of each name that is not empty."""
    found: dict[str, str] = {}
    for each in captured:
        for name, text in each.items():
            if text and name not in found:
                found[name] = text
    return found


def matched(pattern: Any, text: str) -> dict[str, str] | None:
    """Return what a pattern captures in a text, or None if it does not match."""
    kind, texts = next(iter(pattern.items())) if isinstance(pattern, dict) else ("glob", pattern)
    hits = []
    for each in [texts] if isinstance(texts, str) else texts:
        if kind == "regex":
            hit = re.search(each, text)
            hits += [{name: value or "" for name, value in hit.groupdict().items()}] if hit else []
        elif kind == "exact":
            hits += [{}] if text == each else []
        else:
            hits += [{}] if fnmatchcase(text, each + "*" if kind == "prefix" else each) else []
    return first_of(hits) if hits else None


def valid(dated: Mapping[str, str], day: date) -> bool:
    """Return whether something with valid_from and valid_to is valid on a day."""
    return dated.get("valid_from", "0001") <= day.isoformat() < dated.get("valid_to", "9999-12-31")
