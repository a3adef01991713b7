"""Whatever a source does, the error names it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.category_sources.contract import CategoryEntry, CategorySource, RegisteredValue, SourceContent
from chargeback.category_sources.discovery import GuardedCategorySource
from chargeback.errors import PluginError, SourceUnavailable
from chargeback.model.dated import Period


class Fixed(CategorySource):
    """Returns, or raises, what it was given."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def read(self, path: Path, key: str) -> SourceContent:
        if isinstance(self._answer, Exception):
            raise self._answer
        content: SourceContent = self._answer
        return content


def read(answer: Any) -> SourceContent:
    """What the guard makes of an answer."""
    return GuardedCategorySource("tiny", Fixed(answer)).read(Path(), "team")


def entry(**fields: Any) -> SourceContent:
    """One entry with some other fields."""
    return SourceContent([CategoryEntry(**{"entity_type": "topic", "entity_id": "a", "value": "b"} | fields)])


def test_errors() -> None:
    """Declared ones reach the caller unchanged, others name the plugin and the method."""
    with pytest.raises(SourceUnavailable, match="nobody answers"):
        read(SourceUnavailable("nobody answers"))
    with pytest.raises(PluginError) as error:
        read(LookupError("no such thing"))
    assert str(error.value).startswith("plugin tiny: read raised LookupError: no such thing (test_guarded.py, line")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "read: the result should be a SourceContent, not None"),
        (SourceContent("x"), "read: entries should be a list or a tuple, not str 'x'"),  # type: ignore[arg-type]
        (SourceContent([1]), "entry 1 should be a CategoryEntry, not int 1"),  # type: ignore[list-item]
        (SourceContent(values=[1]), "value 1 should be a RegisteredValue, not int 1"),  # type: ignore[list-item]
        (SourceContent(values=[RegisteredValue("")]), "value 1: key should not be empty"),
        (SourceContent(notes=[""]), "note 1 should not be empty"),
        (entry(entity_type="user"), "entry 1: entity_type should be one of identity, resource, topic, not str 'user'"),
        (entry(entity_id=""), "entry 1: entity_id should not be empty"),
        (entry(value=None), "entry 1: value should be a str, not None"),
        (entry(percent=60.0), "entry 1: percent should be a finite Decimal or None, not float 60.0"),
        (entry(percent=Decimal("NaN")), "entry 1: percent should be a finite Decimal or None, not Decimal NaN"),
        (entry(during=None), "entry 1: during should be a Period, not None"),
        (entry(during=Period("2026")), "entry 1: a day of during should be a date, not str '2026'"),  # type: ignore[arg-type]
        (entry(during=Period(date(2026, 1, 2), date(2026, 1, 1))), "entry 1: during should not be empty"),
    ],
)
def test_invalid_results(answer: Any, message: str) -> None:
    """Each value is checked, and the message has its place."""
    with pytest.raises(PluginError) as error:
        read(answer)
    assert str(error.value) == f"plugin tiny: {message}".replace("Decimal NaN", "Decimal Decimal('NaN')")


def test_a_place_is_optional() -> None:
    """An entry without a place is named by its number."""
    assert read(entry()).entries[0].place == "entry 1"
    assert read(entry(place="line 7")).entries[0].place == "line 7"
