"""The database formats values exactly like the rest of the service."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.model.money import render
from chargeback.store.queries.sql_format import (
    csv_field,
    csv_json,
    csv_text,
    decimal_text,
    exact_texts,
    in_parts,
    instant_text,
    json_object,
    json_text,
)
from tests.support.laws import examples
from tests.support.readers import Ask

FORMULAS = st.sampled_from("=+-@'\";\t\r\n")
INVERSE = re.compile(r"(^|[;\t\r\n])'")  # as documented
QUICK = settings(deadline=None, max_examples=examples(60))


@QUICK
@given(st.decimals(min_value=Decimal("-1e25"), max_value=Decimal("1e25"), places=12))
def test_amounts_are_plain_decimals(ask: Ask, value: Decimal) -> None:
    """The text of an amount is that of the model: at least two decimals, no exponent, no other trailing zeros."""
    sql = f"SELECT {decimal_text('x')} FROM (SELECT $v::VARCHAR::DECIMAL(38, 12) AS x)"
    assert ask(lambda cursor: cursor.rows(sql, {"v": f"{value:f}"})) == [(render(value),)]


@pytest.mark.parametrize("value", ["0", "-0.000000000001", "-12.50", "0.10", "99999999999999999999999999"])
def test_awkward_amounts(ask: Ask, value: str) -> None:
    """Zero has no sign, small amounts keep it, large ones keep every digit."""
    sql = f"SELECT {decimal_text('x')} FROM (SELECT $v::VARCHAR::DECIMAL(38, 12) AS x)"
    assert ask(lambda cursor: cursor.rows(sql, {"v": value})) == [(render(Decimal(value)),)]


@QUICK
@given(
    st.lists(
        st.tuples(
            st.decimals(min_value=Decimal("-1e20"), max_value=Decimal("1e20"), places=12),
            st.integers(-(10**26), 10**26) | st.integers(-3, 3).map(lambda count: count * 10**12),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_sums_with_further_digits_are_plain_decimals(ask: Ask, values: list[tuple[Decimal, int]]) -> None:
    """Texts and values equal the DECIMAL plus its further digits, for either sign."""
    parts = [in_parts(f"'{whole:f}'::DECIMAL(38, 12)", f"'{fine}'::HUGEINT") for whole, fine in values]
    ((texts, *sums),) = ask(lambda cursor: cursor.rows(f"SELECT {exact_texts(parts)}, {', '.join(parts)}"))
    assert texts == [render(each) for each in sums]
    assert [Fraction(each) for each in sums] == [Fraction(whole) + Fraction(fine, 10**24) for whole, fine in values]


def test_instants_are_utc(ask: Ask) -> None:
    """Instants end in Z, and have fractions of a second only if needed."""
    sql = f"SELECT {instant_text('x')} FROM (SELECT make_timestamptz($us) AS x)"
    assert ask(lambda cursor: cursor.rows(sql, {"us": 1767225600000000})) == [("2026-01-01T00:00:00Z",)]
    assert ask(lambda cursor: cursor.rows(sql, {"us": 1767225600500000})) == [("2026-01-01T00:00:00.5Z",)]


@QUICK
@given(st.text(FORMULAS | st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20))
def test_csv_fields_survive_and_do_nothing(ask: Ask, value: str) -> None:
    """Removing one apostrophe at the beginning and after each separator restores a text; no spreadsheet cell begins a
    formula, for any separator. Python writes the same as the database."""
    sql = f"SELECT {csv_text('x')} FROM (SELECT $v::VARCHAR AS x)"
    ((field,),) = ask(lambda cursor: cursor.rows(sql, {"v": value}))
    assert csv_field(value) == field
    ((_, read),) = list(csv.reader(io.StringIO(f"x,{field}\r\n", newline=""), strict=True))
    assert INVERSE.sub(r"\1", read) == value
    for cell in re.split(r"[;\t\r\n]", read):
        assert cell[:1] not in set("=+-@")
    assert read[:1] not in set("\t\r\n")
    assert csv_field(value) == field


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1+1", "'=1+1"),
        ("'=1+1", "''=1+1"),
        ("'", "''"),
        ("it's", "it's"),
        ("\t=1", "'\t'=1"),
        ("a;=1;'x;-2", "a;'=1;''x;'-2"),
        ('a;"=1"', 'a;\'"=1"'),
        ("a;b\n@c", "a;b\n'@c"),
        ("sa-1", "sa-1"),
    ],
)
def test_apostrophes_in_csv_fields(ask: Ask, value: str, written: str) -> None:
    """Different texts have different fields, and an apostrophe is added only if needed."""
    sql = f"SELECT {csv_text('x')} FROM (SELECT $v::VARCHAR AS x)"
    ((field,),) = ask(lambda cursor: cursor.rows(sql, {"v": value}))
    assert next(csv.reader(io.StringIO(field, newline=""), strict=True)) == [written]


def test_json_in_csv_fields(ask: Ask) -> None:
    """JSON stays JSON of the same value, without a separator."""
    sql = f"SELECT {csv_json('x')} FROM (SELECT $v::VARCHAR AS x)"
    ((field,),) = ask(lambda cursor: cursor.rows(sql, {"v": '{"a":"x;","b":";=1"}'}))
    (read,) = next(csv.reader(io.StringIO(field, newline=""), strict=True))
    assert ";" not in read
    assert json.loads(read) == {"a": "x;", "b": ";=1"}


@QUICK
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20))
def test_json_objects_are_sorted_and_leave_nulls_out(ask: Ask, value: str) -> None:
    """Metadata is JSON with sorted keys and without nulls, for any texts."""
    expression = json_object([("b", json_text("x")), ("a", "NULL"), ("aa", "'1'")])
    ((text,),) = ask(lambda cursor: cursor.rows(f"SELECT {expression} FROM (SELECT $v::VARCHAR AS x)", {"v": value}))
    assert list(json.loads(text).items()) == [("aa", 1), ("b", value)]
