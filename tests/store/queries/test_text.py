"""The database writes values exactly as the rest of the service does."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chargeback.model.money import render
from chargeback.store.queries.text import csv_text, decimal_text, instant_text, json_object, json_text
from tests.store.queries.conftest import Ask

QUICK = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(st.decimals(min_value=Decimal("-1e25"), max_value=Decimal("1e25"), places=12))
def test_amounts_are_plain_decimals(ask: Ask, value: Decimal) -> None:
    """An amount's text is that of the model: two decimals at least, no exponent, no superfluous zeros."""
    sql = f"SELECT {decimal_text('x')} FROM (SELECT $v::VARCHAR::DECIMAL(38, 12) AS x)"
    assert ask(lambda cursor: cursor.rows(sql, {"v": f"{value:f}"})) == [(render(value),)]


@pytest.mark.parametrize("value", ["0", "-0.000000000001", "-12.50", "0.10", "99999999999999999999999999"])
def test_awkward_amounts(ask: Ask, value: str) -> None:
    """Zero has no sign, small amounts keep it, large ones keep every digit."""
    sql = f"SELECT {decimal_text('x')} FROM (SELECT $v::VARCHAR::DECIMAL(38, 12) AS x)"
    assert ask(lambda cursor: cursor.rows(sql, {"v": value})) == [(render(Decimal(value)),)]


def test_instants_are_utc(ask: Ask) -> None:
    """Instants end in Z; fractions of a second only where there are any."""
    sql = f"SELECT {instant_text('x')} FROM (SELECT make_timestamptz($us) AS x)"
    assert ask(lambda cursor: cursor.rows(sql, {"us": 1767225600000000})) == [("2026-01-01T00:00:00Z",)]
    assert ask(lambda cursor: cursor.rows(sql, {"us": 1767225600500000})) == [("2026-01-01T00:00:00.5Z",)]


@QUICK
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20))
def test_csv_fields_survive_and_do_nothing(ask: Ask, value: str) -> None:
    """A text is read back as it was, or with an apostrophe in front when a spreadsheet would have executed it."""
    sql = f"SELECT {csv_text('x')} FROM (SELECT $v::VARCHAR AS x)"
    ((field,),) = ask(lambda cursor: cursor.rows(sql, {"v": value}))
    ((_, read),) = list(csv.reader(io.StringIO(f"x,{field}\r\n", newline=""), strict=True))
    dangerous = value[:1] in set("=+-@\t\r\n")
    assert read == ("'" if dangerous else "") + value


@QUICK
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20))
def test_json_objects_are_sorted_and_leave_nulls_out(ask: Ask, value: str) -> None:
    """Metadata is JSON with sorted keys, whatever its texts contain."""
    expression = json_object([("b", json_text("x")), ("a", "NULL"), ("aa", "'1'")])
    ((text,),) = ask(lambda cursor: cursor.rows(f"SELECT {expression} FROM (SELECT $v::VARCHAR AS x)", {"v": value}))
    assert list(json.loads(text).items()) == [("aa", 1), ("b", value)]
