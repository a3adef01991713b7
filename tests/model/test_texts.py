"""Cleaning of external text before it is stored."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.texts import clean_column, clean_id, clean_text, replace_surrogates, separated_values

ANYTHING = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("Zürich \u00a0 \U0001f600 e\u0301", "Zürich \u00a0 \U0001f600 e\u0301"),
        ("half \ud83d", "half \ufffd"),
        ("a\0b\0", "ab"),
        ("one\ttwo\r\nthree", "one two  three"),
        ("\x1b[31m\x1f\x7f\x9f", "\ufffd[31m\ufffd\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_what_cannot_be_stored_is_replaced(text: str, clean: str) -> None:
    """NUL is removed, breaks become spaces, other invalid characters become U+FFFD; ordinary text is unchanged."""
    assert clean_text(text) == clean


@given(ANYTHING)
def test_a_clean_text_can_be_stored(text: str) -> None:
    """Clean text is UTF-8 without control characters, and cleaning it again changes nothing."""
    clean = clean_text(text)
    clean.encode()
    assert not any(ord(each) < 32 or 127 <= ord(each) < 160 for each in clean)
    assert clean_text(clean) == clean


@given(ANYTHING, st.integers(20, 300))
def test_an_id_fits(text: str, longest: int) -> None:
    """A clean id fits its column, and cleaning it again changes nothing."""
    found = clean_id(text * 3, longest)
    assert len(found) <= longest
    assert clean_id(found, longest) == found


def test_long_ids_stay_apart() -> None:
    """Long ids that differ only after the cut stay different, and equal ids stay equal."""
    one, two = "x" * 300 + "1", "x" * 300 + "2"
    assert clean_id(one) != clean_id(two)
    assert clean_id(one) == clean_id("x" * 300 + "1")
    assert clean_id("y" * 255) == "y" * 255


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30)))
def test_a_column_is_cleaned_like_its_texts(texts: list[str]) -> None:
    """A column is cleaned like its values; a clean column is returned unchanged."""
    column = pa.chunked_array([pa.array(texts, pa.string())])
    found = clean_column(column, 20)
    assert found.to_pylist() == [clean_id(text, 20) for text in texts]
    assert clean_column(found, 20) is found


def test_a_document_is_cleaned_at_any_depth() -> None:
    """Surrogates are replaced in keys and values at any depth; other types are unchanged."""
    assert replace_surrogates({"a\ud83d": [1, None, {"b": "\udc00"}]}) == {"a\ufffd": [1, None, {"b": "\ufffd"}]}


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["a,b", "c"], {"a", "b", "c"}),
        ([r"a\,b"], {"a,b"}),
        ([r"a\\,b"], {"a\\", "b"}),
        ([r"CORP\x,y\\"], {r"CORP\x", "y\\"}),
        (["", "a,"], {"", "a"}),
        ([r"\,", "a\nb"], {",", "a\nb"}),
    ],
)
def test_values_in_a_text(texts: list[str], values: set[str]) -> None:
    """Commas separate values unless escaped by a backslash; other backslashes are literal."""
    assert separated_values(texts) == values


@given(st.sets(st.text(alphabet=",\\ab\n", max_size=6), min_size=1))
def test_every_value_can_be_written(values: set[str]) -> None:
    """Values with commas and backslashes can be written in one text by escaping both."""
    written = ",".join(value.replace("\\", "\\\\").replace(",", "\\,") for value in sorted(values))
    assert separated_values([written]) == values
