"""YAML files of cost categories, for those who keep them in version control: ``cost_categories:``, and a document below
each key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import yaml

from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.config.document import Document, parse_document
from chargeback.errors import CategoryError, ConfigProblem, ConfigurationError
from chargeback.reports.categories.editing import document_of
from chargeback.store.control.cost_categories import CategoryVersion

ROOT: Final = "cost_categories"

#: More than the largest categories need.
_MOST_VALUES: Final = 1_000_000
_WIDTH: Final = 120


def read_categories(text: str, check: Callable[[CostCategory], None] = lambda _: None) -> list[CostCategory]:
    """Return the cost categories in a YAML text, in its order. A ``check`` of what the text alone does not tell raises
    CategoryError.

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
