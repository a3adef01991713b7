"""YAML files of a folder, with several documents each, as catalogs and clusters keep them. All scalars are texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from chargeback.errors import ConfigProblem, ConfigurationError, SourceError

Manifest = Mapping[str, Any]

_SUFFIXES: Final = frozenset({".yaml", ".yml"})


def read_manifests(path: Path) -> list[tuple[str, Manifest]]:
    """Return every mapping in the YAML files at or below ``path``, with its place; lists of objects are taken apart,
    and hidden folders are left out.

    Raises:
        ConfigurationError: a file is not YAML.
        SourceError: a file cannot be read.
    """
    files = sorted(_files(path)) if path.is_dir() else [path]
    problems: list[ConfigProblem] = []
    found: list[tuple[str, Manifest]] = []
    for file in files:
        name = str(file.relative_to(path)) if path.is_dir() else file.name
        try:
            documents = list(yaml.load_all(file.read_text(encoding="utf-8-sig"), Loader=yaml.BaseLoader))
        except OSError as error:
            raise SourceError(f"{file} cannot be read: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            problems.append(ConfigProblem(name, _message(error)))
            continue
        for number, document in enumerate(documents, start=1):
            place = name if len(documents) == 1 else f"{name}, document {number}"
            found += [(place, manifest) for manifest in _objects(document)]
    if problems:
        raise ConfigurationError(problems)
    return found


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.suffix in _SUFFIXES and not hidden and file.is_file():
            yield file


def _objects(document: Any) -> Iterator[Manifest]:
    if isinstance(document, Mapping):
        items = document.get("items")
        if isinstance(items, Sequence) and not isinstance(items, str) and str(document.get("kind")).endswith("List"):
            yield from (item for item in items if isinstance(item, Mapping))
        else:
            yield document


def _message(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8"
    place = f" (line {mark.line + 1})" if mark is not None else ""
    return f"is not YAML: {getattr(error, 'problem', None) or 'it cannot be read'}{place}"


def part(manifest: Manifest, *path: str) -> Mapping[str, Any]:
    """Return a mapping inside a manifest; an empty one where there is none.

    >>> part({"metadata": {"labels": {"team": "a"}}}, "metadata", "labels")
    {'team': 'a'}
    """
    found: Any = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def text(found: Mapping[str, Any], name: str) -> str:
    """Return a text of a mapping, without space around it; an empty one where there is none.

    >>> text({"a": " b "}, "a"), text({}, "a"), text({"a": []}, "a")
    ('b', '', '')
    """
    value = found.get(name)
    return value.strip() if isinstance(value, str) else ""


def name_of(manifest: Manifest) -> str:
    """Return the name of what a manifest describes; an empty text where it has none."""
    return text(part(manifest, "metadata"), "name")


def names_in(value: str) -> list[str]:
    """Return the names in a list that is separated by commas or line breaks.

    >>> names_in("a, b,,")
    ['a', 'b']
    """
    return [name for name in (each.strip() for each in value.replace("\n", ",").split(",")) if name]
