"""Cost categories: resolving many rules, and sums by category compared with the plain ones."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final

import pyarrow as pa

from benchmarks.measure import Figure, milliseconds
from benchmarks.questions import Asking, uncached
from benchmarks.serving import Client
from chargeback.categories.document import CostCategory, FromTag
from chargeback.categories.matching import All, AnyOf, Match, Not, Pattern, Test, glob_regex
from chargeback.categories.parsing import parse_category
from chargeback.categories.resolve import Resolved, resolve, used_columns
from chargeback.model.dated import DatedValue

_ENTITIES: Final = 10_000
_RULES: Final = 500
_TEAMS: Final = 20
_CLUSTERS: Final = 20
_ENVIRONMENTS: Final = 5
#: A day in the middle of the tenants' days, on which some rules begin.
_CHANGE: Final = date(2026, 8, 1)
_KEY: Final = "bench"
_SHARED: Final = {"id": "platform", "match": {"resource": "lkc-0"}, "assign": "platform"}
_SPLIT: Final = {"id": "split", "match": {"resource": "lkc-1"}, "split": {"value-1": "60", "value-2": "40"}}
_HANDED_ON: Final = {"from": "platform", "to": "*", "by": "proportional"}


def resolving(*, quick: bool) -> Iterator[Figure]:
    """Resolve 500 rules of all kinds for 10,000 entities; the reference tries every rule on every entity.

    Raises:
        RuntimeError: the two results differ.
    """
    category = parse_category(_KEY, {"rules": mixed_rules()})
    subjects, entities = _subjects(used_columns(category)), Entities()
    found = partial(resolve, category, subjects, entities, entities)
    taken = milliseconds(found, repeats=5)
    obvious = None
    if not quick:
        if _rules_on(found(), _CHANGE) != one_by_one(category, subjects.to_pylist(), _CHANGE):
            raise RuntimeError("the rules decide differently one by one")
        plain = partial(one_by_one, category, subjects.to_pylist(), _CHANGE)
        obvious = milliseconds(plain, repeats=1, seconds=0)
    name = f"resolve {len(category.rules)} rules for {_ENTITIES:,} entities"
    yield Figure("categories", name, taken, "ms", reference=obvious, note="the reference tries rule by rule")


def sums_by_category(asking: Asking) -> Iterator[Figure]:
    """Measure sums by a category with one value for each row, with a split, and with a value that reallocates its cost.
    The reference of the first is the sum by identity; the reference of the other two is the first."""
    path = asking.path(f"/cost-categories/{_KEY}")
    rules = mixed_rules()
    documents: tuple[tuple[str, dict[str, Any]], ...] = (
        ("by category", {"rules": rules}),
        ("by category, with a split", {"rules": [_SPLIT, *rules]}),
        ("by category, with a split and a share", {"rules": [_SHARED, _SPLIT, *rules], "share": [_HANDED_ON]}),
    )
    first, last = asking.dates(None)

    def _ask(group_by: str) -> Callable[[], Any]:
        dates = {"start_date": str(first), "end_date": str(last)}
        return uncached(asking.client, asking.path("/chargebacks/aggregate"), group_by=group_by, **dates)

    reference, of = milliseconds(_ask("identity_id"), repeats=asking.repeats), "by identity"
    for name, document in documents:
        _write(asking.client, path, document)
        start = time.perf_counter()
        _ask(f"category:{_KEY}")()
        resolved = (time.perf_counter() - start) * 1000
        taken = milliseconds(_ask(f"category:{_KEY}"), repeats=asking.repeats)
        note = f"the reference is {of}; the first answer after a change of the rules: {resolved:,.0f} ms"
        group = f"categories, {asking.shape.name}"
        yield Figure(group, f"{name} and day, all", taken, "ms", reference=reference, note=note)
        if of == "by identity":
            reference, of = taken, "by the category without a split"
    asking.client.exchange("DELETE", path, headers={"If-Match": asking.client.etag(path)})


def _write(client: Client, path: str, document: dict[str, Any]) -> None:
    """Write the category, replacing any that exists.

    Raises:
        RuntimeError: the service rejects it.
    """
    there, _ = client.exchange("GET", path)
    headers = {"Content-Type": "application/json"}
    if there == HTTPStatus.OK:
        headers["If-Match"] = client.etag(path)
    status, content = client.exchange("PUT", path, json.dumps({"document": document}).encode(), headers)
    if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise RuntimeError(f"PUT {path} was answered {status}: {content[:300]!r}")


def mixed_rules() -> list[dict[str, Any]]:
    """Return rules of all kinds, most of which match a few entities; the last one matches the rest by a tag."""
    rules = [{"id": f"rule-{number}", **_rule(number)} for number in range(_RULES - 1)]
    return [*rules, {"id": "by-team", "match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}}]


def _rule(number: int) -> dict[str, Any]:
    """Return a rule; ten kinds alternate."""
    some = [f"sa-{(number * 61 + step * 7) % _ENTITIES:06d}" for step in range(4)]
    team, value = f"team-{number % _TEAMS}", f"value-{number % 40}"
    of_cluster, narrow = {"resource": [f"lkc-{number % _CLUSTERS}"]}, f"sa-{number % 100:04d}"
    match number % 10:
        case 0:
            return {"match": {"identity": some}, "assign": value}
        case 1:
            return {"match": {"identity": {"prefix": f"{narrow}{number % 10}"}}, "assign": value}
        case 2:
            return {"match": {"identity": f"*{number:03d}?"}, "assign": value}
        case 3:
            return {"match": {"identity": {"regex": f"^sa-0*{number}[0-4]$"}}, "assign": value}
        case 4:
            regex = f"^Service {number}[0-9] of (?P<team>team [0-9]+)$"
            return {"match": {"display_name": {"regex": regex}}, "assign": "${team}"}
        case 5:
            by_team = {"tag": {"key": "team", "value": team}}
            return {"match": {"all": [by_team, {"identity": some}]}, "assign": value}
        case 6:
            return {"match": {"all": [of_cluster, {"identity": {"prefix": narrow}}]}, "assign": value}
        case 7:
            by_environment = {"environment": f"env-{number % _ENVIRONMENTS}"}
            inside = [by_environment, {"identity": {"prefix": narrow}}, {"not": of_cluster}]
            return {"match": {"all": inside}, "assign": value}
        case 8:
            return {"match": {"any": [{"identity": some[0]}, {"display_name": f"Service {number} *"}]}, "assign": value}
        case _:
            return {"match": {"identity": some}, "assign": value, "valid_from": _CHANGE.isoformat()}


class Entities:
    """The tags and names of the entities, in memory, the same as those of the generated tenants."""

    def holders(self, entity_type: str, key: str) -> Mapping[str, Sequence[DatedValue]]:
        """Return the values of a tag."""
        return _teams() if (entity_type, key) == ("identity", "team") else {}

    def names(self, entity_type: str) -> Mapping[str, str]:
        """Return the display names."""
        return _names() if entity_type == "identity" else {}


@lru_cache
def _teams() -> dict[str, Sequence[DatedValue]]:
    return {f"sa-{n:06d}": (DatedValue(f"team-{n % _TEAMS}"),) for n in range(_ENTITIES) if n % 19}


@lru_cache
def _names() -> dict[str, str]:
    return {f"sa-{n:06d}": f"Service {n} of team {n % _TEAMS}" for n in range(_ENTITIES)}


def _subjects(columns: Sequence[str]) -> pa.Table:
    texts = {
        "identity_id": [f"sa-{n:06d}" for n in range(_ENTITIES)],
        "resource_id": [f"lkc-{n % _CLUSTERS}" for n in range(_ENTITIES)],
        "environment_id": [f"env-{n % _ENVIRONMENTS}" for n in range(_ENTITIES)],
    }
    return pa.table({name: pa.array(texts[name], pa.string()) for name in columns})


def _rules_on(found: Resolved, day: date) -> list[int | None]:
    """Return the index of the rule that applies to each subject on a day."""
    columns = (found.periods[name].to_pylist() for name in ("first_day", "end_day", "outcome"))
    return [found.outcomes[outcome].rule for first, end, outcome in zip(*columns, strict=True) if first <= day < end]


def one_by_one(category: CostCategory, subjects: Sequence[Mapping[str, str]], day: date) -> list[int | None]:
    """Return the index of the first rule that matches each subject on a day."""
    return [_first_rule(category, subject, day) for subject in subjects]


def _first_rule(category: CostCategory, subject: Mapping[str, str], day: date) -> int | None:
    for place, rule in enumerate(category.rules):
        if day in rule.during and _holds(rule.match, subject):
            if isinstance(rule.assign, FromTag) and subject["identity_id"] not in _teams():
                continue
            return place
    return None


def _holds(match: Match, subject: Mapping[str, str]) -> bool:
    if isinstance(match, All):
        return all(_holds(each, subject) for each in match.matches)
    if isinstance(match, AnyOf):
        return any(_holds(each, subject) for each in match.matches)
    if isinstance(match, Not):
        return not _holds(match.match, subject)
    text = _text(match, subject)
    return text is not None and (match.pattern is None or _matches(match.pattern, text))


def _text(test: Test, subject: Mapping[str, str]) -> str | None:
    if test.subject == "tag":
        values = _teams().get(subject["identity_id"], ())
        return values[0].value if values else None
    return _names().get(subject["identity_id"]) if test.subject == "display_name" else subject[f"{test.subject}_id"]


def _matches(pattern: Pattern, text: str) -> bool:
    for kind, wanted in pattern.alternatives:
        if kind == "exact" and text == wanted:
            return True
        if kind == "prefix" and text.startswith(wanted):
            return True
        if kind in {"glob", "regex"} and _compiled(kind, wanted).search(text):
            return True
    return False


@lru_cache(maxsize=1024)
def _compiled(kind: str, text: str) -> re.Pattern[str]:
    return re.compile(glob_regex(text).replace(r"\z", r"\Z") if kind == "glob" else text)
