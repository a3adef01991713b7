"""Only files of the requested days are read, and only the first and last day may be partial."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from chargeback.model.days import instants
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import Snapshot
from chargeback.store.queries.scan import Scan, microseconds

DAYS = [date(2026, 1, day) for day in (1, 2, 3, 4)]
SNAPSHOT = Snapshot(1, tuple(DayFile(day, f"/{day}", 10) for day in DAYS))


def paths(scan: Scan) -> list[str]:
    """Return the paths of the files of a scan."""
    return [file.path for file in scan.files]


def test_whole_utc_days_need_no_condition() -> None:
    """A range of UTC days is a list of files without a condition."""
    scan = Scan.of(SNAPSHOT, instants(DAYS[1], DAYS[2]))
    assert paths(scan) == ["/2026-01-02", "/2026-01-03"]
    assert not scan.condition().clauses


def test_a_zone_filters_its_first_and_last_day() -> None:
    """East of Greenwich a day begins on the UTC day before."""
    scan = Scan.of(SNAPSHOT, instants(DAYS[1], DAYS[2], ZoneInfo("Europe/Berlin")))
    assert paths(scan) == ["/2026-01-01", "/2026-01-02", "/2026-01-03"]
    assert scan.partial_days == {DAYS[0], DAYS[2]}
    assert scan.condition().parameters["window_start"] == microseconds(datetime(2026, 1, 1, 23, tzinfo=UTC))


def test_nothing_to_read() -> None:
    """Days without rows have no file."""
    assert paths(Scan.of(SNAPSHOT, instants(date(2025, 1, 1), date(2025, 2, 1)))) == []
    assert paths(Scan.of(SNAPSHOT, instants(DAYS[2], DAYS[0]))) == []


def test_pieces_are_whole_files_in_order() -> None:
    """Files are combined until they have enough rows; a large file is a separate piece."""
    days = [date(2026, 1, day) for day in range(1, 7)]
    files = [DayFile(day, f"/{day:%d}", rows) for day, rows in zip(days, [4, 5, 90, 10, 1, 2], strict=True)]
    scan = Scan.of(Snapshot(1, tuple(files)), instants(days[0], days[-1]))
    assert [paths(piece) for piece in scan.pieces(10)] == [["/01", "/02", "/03"], ["/04"], ["/05", "/06"]]
    assert not list(Scan.of(SNAPSHOT, instants(date(2025, 1, 1), date(2025, 2, 1))).pieces(10))
