"""Periods."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chargeback.emitters.contract import AGGREGATIONS, EmitterParams, LocalPath, Period
from chargeback.settings import FOLDER


class Located(EmitterParams):
    """Parameters with a path."""

    place: LocalPath


@given(st.dates(date(1970, 1, 1), date(2900, 1, 1)), st.sampled_from(AGGREGATIONS))
def test_every_day_lies_in_exactly_one_period(day: date, aggregation: str) -> None:
    """The period of a day contains it, and is the period of each of its days."""
    period = Period.containing(day, aggregation)
    assert day in period.days
    assert {Period.containing(other, aggregation) for other in period.days} == {period}


@pytest.mark.parametrize(
    ("aggregation", "start", "days"),
    [
        ("hourly", "2026-02-11", 1),
        ("daily", "2026-02-11", 1),
        ("weekly", "2026-02-09", 7),
        ("monthly", "2026-02-01", 28),
    ],
)
def test_periods_of_a_day(aggregation: str, start: str, days: int) -> None:
    """Weeks begin on Monday and months on the first; the period of hourly rows is a day."""
    period = Period.containing(date(2026, 2, 11), aggregation)
    assert (str(period.start), len(period.days)) == (start, days)


def test_a_relative_path_starts_at_the_folder_of_the_file(tmp_path: Path) -> None:
    """A relative path is joined to the folder of the configuration; an absolute one does not change."""
    for written, meant in (("out", tmp_path / "out"), ("/var/x", Path("/var/x"))):
        assert Located.model_validate({"place": written}, context={FOLDER: tmp_path}).place == meant


@pytest.mark.parametrize("written", ["", "  ", "a\0b", 7, None])
def test_what_is_no_path(written: object) -> None:
    """Empty texts, NUL and other types are not paths."""
    with pytest.raises(ValidationError):
        Located.model_validate({"place": written})
