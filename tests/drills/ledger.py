"""The ledger of the failure drills: for each fault, the number of tries, how many the service survived, and how many
chargeback rows were lost, doubled or different in the end."""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from chargeback.model.days import utc_now, utc_today
from chargeback.recompute.verify import verify
from chargeback.store.control.days import read_days
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, read_day
from chargeback.store.tenant import TenantStore
from tests.support.serving import client_of, services_for

#: The day on which the drills began, because the drilled processes use today's date.
TODAY: Final = utc_today()

#: Every drilled fault, in the order of the table.
FAULTS: Final = (
    "SIGKILL at a random moment of a backfill",
    "SIGKILL at a random moment of a run over PostgreSQL and a bucket",
    "SIGSTOP of a run until another has taken over",
    "two workers and two APIs at once, each day calculated once",
    "two hosts: the worker killed by SIGKILL, started again",
    "two hosts: the worker's host loses its power, another takes over",
    "two hosts: the network to PostgreSQL and S3 cut for seconds",
    "disk full in the middle of a run",
    "disk turned read-only in the middle of a run",
    "PostgreSQL stopped in the middle of a run, started again",
    "PostgreSQL connections cut in the middle of transactions",
    "facts file missing",
    "facts file cut short",
    "facts file with a flipped bit",
    "object store killed for 4 s while a run writes",
    "object store killed for 20 s while a run writes",
    "object store loses every fifth answer to a write",
    "object store answers every fifth write with 500 or 503",
    "a Dask worker killed while days are calculated",
    "the Dask scheduler killed while days are calculated",
    "a run killed while Dask workers calculate its days",
    "provider answers 401",
    "provider answers 403",
    "provider answers 404",
    "provider answers a storm of 429",
    "provider answers 500",
    "provider answers truncated JSON",
    "provider answers HTML",
    "provider pages for ever",
    "provider repeats pages",
    "provider drips slowly",
    "provider sends odd texts",
    "metrics answer 401",
    "metrics answer 403",
    "metrics answer 404",
    "metrics answer a storm of 429",
    "metrics answer 500",
    "metrics answer truncated JSON",
    "metrics answer HTML",
    "metrics answer in part",
    "metrics drip slowly",
    "metrics reset every connection",
    "metrics away during a recalculation",
    "an optional listing fails once",
    "clock put back",
    "another tenant of the process is broken",
    "another tenant's PostgreSQL hangs",
    "parent of a run paused by SIGSTOP until its time limit",
    "PostgreSQL away when the service starts",
)

_HEAD: Final = ("| fault | tries | survived | lost rows | last tried |", "|---|---|---|---|---|")
_ROW: Final = re.compile(r"^\| (.+?) \| .* \|$", re.MULTILINE)
_PLACE: Final = re.compile(r"(?<=<!-- drills -->\n).*(?=<!-- end of drills -->)", re.DOTALL)


@dataclass(frozen=True)
class StoredResult:
    """The final state of a tenant: its chargeback rows by day and order, and the bytes of its export."""

    rows: pa.Table
    exported: bytes

    @classmethod
    def of(cls, store: TenantStore) -> StoredResult:
        """Return the stored result; every day must sum to its bill."""
        with store.control.read() as connection:
            days = [state.tracking_date for state in read_days(connection)]
        assert days
        assert not [check for check in verify(store) if check.difference]
        rows = pa.concat_tables([read_day(store.facts, CHARGEBACKS_TABLE, day) for day in days])
        with client_of(services_for(store, clock=utc_now)) as client:
            answer = client.post(f"/api/v1/tenants/{store.tenant_name}/export")
        assert answer.status_code == 200
        return cls(rows, answer.content)

    def differing_rows(self, found: StoredResult, *, but: Sequence[str] = ()) -> int:
        """Return the number of missing and of superfluous rows; a different row counts as both. The columns ``but`` may
        differ."""
        wanted, there = (Counter(map(repr, each.rows.drop_columns(list(but)).to_pylist())) for each in (self, found))
        return (wanted - there).total() + (there - wanted).total()


@dataclass
class Drill:
    """The results of one fault so far."""

    tries: int = 0
    survived: int = 0
    lost_rows: int = 0

    def compare(self, undisturbed: StoredResult, store: TenantStore) -> None:
        """Add the number of rows that differ from an undisturbed tenant's; any, or an exported byte, is a failure."""
        found = StoredResult.of(store)
        differing = undisturbed.differing_rows(found)
        self.lost_rows += differing
        assert differing == 0
        assert found.exported == undisturbed.exported

    def compare_shares(self, undisturbed: StoredResult, store: TenantStore) -> None:
        """Do the same for a tenant of another name, whose rows may differ only in the tenant."""
        differing = undisturbed.differing_rows(StoredResult.of(store), but=("tenant_id", "dimension_id"))
        self.lost_rows += differing
        assert differing == 0


@dataclass
class Ledger:
    """All drills of one test session."""

    drills: dict[str, Drill] = field(default_factory=dict)

    @contextmanager
    def drill(self, fault: str) -> Iterator[Drill]:
        """Count one try, which is survived unless the ``with`` block raises. ``fault`` is one of :data:`FAULTS`."""
        assert fault in FAULTS, fault
        drill = self.drills.setdefault(fault, Drill())
        drill.tries += 1
        yield drill
        drill.survived += 1

    def add(self, drills: Mapping[str, Mapping[str, int]]) -> None:
        """Add the results of another session."""
        for fault, counts in drills.items():
            drill = self.drills.setdefault(fault, Drill())
            for name, count in counts.items():
                setattr(drill, name, getattr(drill, name) + count)

    def rows(self, day: date) -> dict[str, str]:
        """Return a line of a Markdown table for each fault that was drilled on a day."""
        return {
            fault: f"| {fault} | {d.tries} | {d.survived} | {d.lost_rows} | {day} |" for fault, d in self.drills.items()
        }

    def table(self, before: str = "") -> list[str]:
        """Return the lines of a Markdown table, in the order of :data:`FAULTS`; faults that were not drilled keep their
        line of the table ``before``."""
        rows = {found[1]: found[0] for found in _ROW.finditer(before)} | self.rows(utc_today())
        return [*_HEAD, *(rows[fault] for fault in FAULTS if fault in rows)]

    def write(self, page: Path) -> None:
        """Write the table, and where it was made, between the markers of the page."""
        made = (
            f"Made by `make drill`, Chargeback {version('chargeback')}, "
            f"{platform.system()} {platform.machine()}, Python {platform.python_version()}."
        )
        text = page.read_text(encoding="utf-8")
        place = _PLACE.search(text)
        assert place, f"{page} has no place for the table"
        page.write_text(_PLACE.sub("\n".join(("", made, "", *self.table(place[0]), "", "")), text), encoding="utf-8")


def tries(quick: int, drill: int, *, seconds: int = 900) -> pytest.MarkDecorator:
    """Parametrise a test with its number of tries: ``quick`` in every run of the suite (0: it does not run), ``drill``
    in a drill, with a timeout of ``seconds``."""
    long = pytest.param(drill, marks=[pytest.mark.drill, pytest.mark.timeout(seconds)], id=f"drill-{drill}")
    often = [pytest.param(quick, id=f"quick-{quick}")] if quick else []
    return pytest.mark.parametrize("tries", [*often, long])
