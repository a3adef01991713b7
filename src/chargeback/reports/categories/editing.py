"""Edits of cost categories: stored versions, writing one or several, and the differences between two versions.

Categories can be kept in version control as YAML: ``cost_categories:``, and a document under each key.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import yaml
from sqlalchemy import Connection

from chargeback.categories.canonical import to_document
from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category, warnings_of
from chargeback.config.document import Document, parse_document
from chargeback.errors import CategoryError, CategoryProblem, ConfigProblem, ConfigurationError, EditConflict
from chargeback.model.days import Clock, utc_now
from chargeback.model.edits import present_version
from chargeback.reports.wording import counted
from chargeback.store.control import cost_categories as store
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.cost_categories import CategoryVersion, CategoryWrite

#: The maximum number of cost categories of a tenant.
MOST_CATEGORIES: Final = 100

#: The kinds of differences.
ADDED, REMOVED, CHANGED = "+", "-", "~"

#: The key of all categories in a file.
ROOT: Final = "cost_categories"
#: The maximum number of values of a file, more than the largest categories need, and the width of its lines.
_MOST_VALUES: Final = 1_000_000
_WIDTH: Final = 120
#: The longest text of a rule that a difference shows.
_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class CategoryDifference:
    """One difference between two versions: :data:`ADDED`, :data:`REMOVED` or :data:`CHANGED`, and its subject."""

    sign: str
    what: str

    def __str__(self) -> str:
        return f"{self.sign} {self.what}"


@dataclass(frozen=True, slots=True)
class CategoryEdit:
    """The result of writing a category, or of its preview: the versions before and after it, or None."""

    before: CategoryVersion | None
    after: CategoryVersion
    differences: tuple[CategoryDifference, ...]

    @property
    def is_change(self) -> bool:
        """Whether anything was written."""
        return self.before != self.after


class TooManyCategories(EditConflict):
    """The tenant has as many cost categories as it may have."""

    def __init__(self) -> None:
        super().__init__(f"there are {MOST_CATEGORIES} cost categories already; remove some")


def parse_version(version: CategoryVersion) -> CostCategory:
    """Return the category that a stored version describes.

    Raises:
        CategoryError: this version of the service refuses it.
    """
    return parse_category(version.key, json.loads(version.document or "{}"), is_stored=True)


def warnings_about(version: CategoryVersion) -> Sequence[CategoryProblem]:
    """Return the warnings about a stored version, or, if it was written by an earlier version of the service and this
    one refuses it, the reasons."""
    try:
        return warnings_of(parse_version(version))
    except CategoryError as error:
        return error.problems


def measures_in(category: CostCategory) -> set[str]:
    """Return the measures by which values of a category reallocate their cost."""
    return {step.metric for step in category.share if step.metric is not None}


def check_measures(category: CostCategory, known: Collection[str]) -> None:
    """Check that the measures by which values reallocate their cost are known.

    Raises:
        CategoryError: a measure is not ``known``.
    """
    listed = f"known are {', '.join(sorted(known))}" if known else "nothing was measured yet"
    problems = [
        CategoryProblem(f"share[{place}].by", f"unknown measure {step.metric}{_near(step.metric, known)}; {listed}")
        for place, step in enumerate(category.share)
        if step.metric is not None and step.metric not in known
    ]
    if problems:
        raise CategoryError(tuple(problems))


def _near(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def document_of(version: CategoryVersion) -> dict[str, Any]:
    """Return the document of a version; empty for a removal."""
    found: dict[str, Any] = json.loads(version.document or "{}")
    return found


def counts_of(version: CategoryVersion) -> dict[str, int]:
    """Return the numbers of rules and of registered values of a version."""
    document = document_of(version)
    return {"rules": len(document.get("rules", [])), "values": len(document.get("values", {}))}


def save_category(
    connection: Connection,
    category: CostCategory,
    *,
    expected: CategoryVersion | None,
    who: str,
    reason: str | None = None,
    clock: Clock = utc_now,
) -> CategoryEdit:
    """Write a category instead of the ``expected`` version, or as a new one. If it equals the present version, nothing
    is written.

    Raises:
        EditConflict: the present version is another one, or there are too many categories.
    """
    text = _text(category)
    if expected is None and len(store.list_categories(connection)) >= MOST_CATEGORIES:
        raise TooManyCategories
    if expected is not None and expected.document == text:
        return CategoryEdit(expected, expected, ())
    write = CategoryWrite(category.key, text, reason or None)
    number = None if expected is None else expected.version
    after = store.write_category(connection, write, expected=number, who=who, clock=clock)
    return CategoryEdit(expected, after, differences(expected, category))


def save_categories(
    connection: Connection,
    categories: Iterable[CostCategory],
    *,
    who: str,
    reason: str | None = None,
    clock: Clock = utc_now,
) -> list[CategoryEdit]:
    """Write categories instead of their present versions, in the caller's transaction.

    Raises:
        EditConflict: there are too many categories.
    """
    lock_tenant(connection)
    return [
        save_category(
            connection,
            category,
            expected=store.read_category(connection, category.key),
            who=who,
            reason=reason,
            clock=clock,
        )
        for category in categories
    ]


def preview_categories(connection: Connection, categories: Iterable[CostCategory]) -> list[CategoryEdit]:
    """Return what :func:`save_categories` would do now, if no other caller writes; nothing is written."""
    return [_preview(connection, category) for category in categories]


def _preview(connection: Connection, category: CostCategory) -> CategoryEdit:
    last = store.last_version(connection, category.key)
    present = present_version(last)
    text = _text(category)
    if present is not None and present.document == text:
        return CategoryEdit(present, present, ())
    number = 1 if last is None else last.version + 1
    after = CategoryVersion(category.key, number, text, "", utc_now(), None)
    return CategoryEdit(present, after, differences(present, category))


def differences(before: CategoryVersion | None, after: CostCategory) -> tuple[CategoryDifference, ...]:
    """Return the differences between a stored version and a category: rules, values, the default and the steps. Rules
    are identified by their ids; rules without an id by their content."""
    old = {} if before is None else document_of(before)
    new = to_document(after)
    found = [*_rules(old.get("rules", []), new.get("rules", [])), *_values(old.get("values", {}), new)]
    if before is not None and old.get("default") != new["default"]:
        found.append(CategoryDifference(CHANGED, f"default: {old.get('default')} → {new['default']}"))
    if old.get("share", []) != new.get("share", []):
        found.append(CategoryDifference(CHANGED, f"share: {counted(len(new.get('share', [])), 'step')}"))
    return tuple(found)


def _text(category: CostCategory) -> str:
    """Return the document of a category as it is stored: equal categories have equal texts."""
    return json.dumps(to_document(category), ensure_ascii=False, separators=(",", ":"))


def _rules(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Iterator[CategoryDifference]:
    before, after = ({rule["id"]: rule for rule in rules if "id" in rule} for rules in (old, new))
    for rule_id in before | after:
        if rule_id not in after:
            yield CategoryDifference(REMOVED, f"rule {rule_id}: {_shown(before[rule_id])}")
        elif rule_id not in before:
            yield CategoryDifference(ADDED, f"rule {rule_id}: {_shown(after[rule_id])}")
        elif before[rule_id] != after[rule_id]:
            yield CategoryDifference(CHANGED, f"rule {rule_id}: {_shown(after[rule_id])}")
    gone, there = (Counter(_key(rule) for rule in rules if "id" not in rule) for rules in (old, new))
    for text in (gone - there).elements():
        yield CategoryDifference(REMOVED, f"rule: {_shown(json.loads(text))}")
    for text in (there - gone).elements():
        yield CategoryDifference(ADDED, f"rule: {_shown(json.loads(text))}")
    common = (before.keys() & after.keys()) | (gone & there).keys()
    names = ([rule.get("id") or _key(rule) for rule in rules] for rules in (old, new))
    orders = [list(dict.fromkeys(name for name in each if name in common)) for each in names]
    if orders[0] != orders[1]:
        yield CategoryDifference(CHANGED, "the order of the rules")


def _values(old: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[CategoryDifference]:
    new: Mapping[str, Any] = document.get("values", {})
    for key in sorted(old.keys() | new.keys()):
        if key not in new:
            yield CategoryDifference(REMOVED, f"value {key}")
        elif key not in old:
            yield CategoryDifference(ADDED, f"value {key}")
        elif old[key] != new[key]:
            yield CategoryDifference(CHANGED, f"value {key}")


def _key(rule: Mapping[str, Any]) -> str:
    return json.dumps(rule, ensure_ascii=False)


def _shown(rule: Mapping[str, Any]) -> str:
    """Return a rule in one line."""
    text = json.dumps({name: part for name, part in rule.items() if name != "id"}, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def read_categories(text: str, check: Callable[[CostCategory], None] = lambda _: None) -> list[CostCategory]:
    """Return the cost categories in a YAML text, in its order. ``check`` may raise CategoryError for more than the
    text shows.

    Raises:
        ConfigurationError: with every problem of every category, and its line.
    """
    document = parse_document(text, None, most=_MOST_VALUES)
    problems = list(document.problems)
    root: Any = document.values
    if not isinstance(root, Mapping) or not isinstance(root.get(ROOT), Mapping):
        raise ConfigurationError(
            problems or [ConfigProblem(ROOT, "this key is required, with a mapping of categories")]
        )
    problems += [document.problem((name,), "unknown key") for name in root if name != ROOT]
    found = []
    for key, each in root[ROOT].items():
        try:
            found.append(parse_category(key, each))
            check(found[-1])
        except CategoryError as error:
            problems += [_placed(document, key, problem.path, problem.message) for problem in error.problems]
    if problems:
        raise ConfigurationError(problems)
    return found


def categories_yaml(versions: Iterable[CategoryVersion]) -> str:
    """Return categories as the text of a YAML file, in canonical form."""
    documents = {version.key: document_of(version) for version in versions}
    return yaml.safe_dump({ROOT: documents}, sort_keys=False, allow_unicode=True, width=_WIDTH)


def _placed(document: Document, key: str, path: str, message: str) -> ConfigProblem:
    key_path = document.key_path_of(path, (ROOT, key))
    found = document.problem(key_path, message)
    where = re.sub(r"\.(?=\[)", "", f"{ROOT}.{key}.{path}".rstrip("."))
    return ConfigProblem(where, found.message)
