"""One seed, one history: the real pipeline, store and reader, in one thread, over a place, a database and a clock that
fail as a seed says.

After every step what is charged is what is billed, nothing that is named is missing, and everything that was answered
as of an earlier instant, within runs too, is answered again with the same bytes.
"""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Connection

from chargeback.errors import ChargebackError, HistoryGone, SourceUnavailable, StorageError
from chargeback.model.dated import Period
from chargeback.model.days import Clock, DayRange
from chargeback.recompute.verify import verify
from chargeback.store.backup import back_up, restore
from chargeback.store.control import tags
from chargeback.store.control.lease import Lease
from chargeback.store.facts.places import Folder
from chargeback.store.facts.tables import FactTables
from chargeback.store.facts.upkeep import LEFTOVER_AGE, remove_unnamed
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from chargeback.store.tenant import TenantStore
from tests.pipeline.test_revise import ACCEPT_LESS, DAYS, HALF, NINE_TO_ONE
from tests.support.clock import NOW
from tests.support.facts import catalogue_of
from tests.support.sources import RECALCULATE, Laboratory, line

#: What was answered: the charges and topics as CSV, and the sums of bills and of charges by a tag.
Answer = tuple[bytes, bytes, dict[tuple[str | None, ...], Decimal], dict[tuple[str | None, ...], Decimal]]

engine = cache(QueryEngine)


class Killed(BaseException):
    """The process ends here."""


class Faults:
    """What goes wrong in one step, as chance says: at most one thing, at one of its writes."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._left = -1
        self.what = ""

    def plan(self) -> None:
        """Choose what goes wrong in the next step, and when."""
        kinds = ["", "", "kill", "lost put", "half put", "disk full", "no commit", "lost answer", "stolen lease"]
        self.what, self._left = self._chance.choice(kinds), self._chance.randint(0, 12)

    def meets(self, *kinds: str) -> bool:
        """Count a write; return whether the planned thing happens at it."""
        if self.what not in kinds:
            return False
        self._left -= 1
        return self._left == -1


class FaultyFolder(Folder):
    """A disk that fails."""

    def __init__(self, root: Path, faults: Faults) -> None:
        super().__init__(root)
        self._faults = faults

    def write(self, folder: str, name: str, suffix: str, content: bytes) -> str:
        """Write a file, or not, or a part of it."""
        if self._faults.meets("lost put", "half put", "disk full", "kill"):
            if self._faults.what == "half put":
                super().write(folder, name, suffix, content[: len(content) // 2])
            if self._faults.what == "kill":
                raise Killed
            code = errno.ENOSPC if self._faults.what == "disk full" else errno.EIO
            raise OSError(code, self._faults.what)
        return super().write(folder, name, suffix, content)


class FaultyTables(FactTables):
    """Tables whose transactions fail, or whose answer is lost; each is followed by a look at what is served then."""

    faults: Faults
    look: Callable[[datetime], None]

    @contextmanager
    def commit(self, lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        """Commit, or not."""
        if self.faults.meets("stolen lease"):
            lease.release()
        is_met = self.faults.meets("no commit", "lost answer", "kill")
        with super().commit(lease, now) as (connection, at):
            yield connection, at
            if is_met and self.faults.what == "no commit":
                raise StorageError("the transaction failed")
        self.look(at)
        if is_met and self.faults.what == "lost answer":
            raise StorageError("the answer was lost")
        if is_met and self.faults.what == "kill":
            raise Killed


class History:
    """One history: a tenant, what happens to it, and what it has answered."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.now = NOW
        self.faults = Faults(self.chance)
        self.seen: dict[datetime, Answer] = {}
        self.epoch = 0
        self._folder = folder
        self._backups = 0
        self.laboratory = Laboratory(folder / "tenant", days=len(DAYS))
        self.laboratory.clock = self.tick
        self._disturb()
        sources = self.laboratory.sources
        sources.lines = {day: [line("100", day=day)] for day in DAYS[1:]}
        sources.totals = NINE_TO_ONE
        sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3, ("lkc-1", "pay"): 1}}

    def tick(self) -> datetime:
        """The time, which goes on whenever somebody looks."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def _disturb(self) -> None:
        store = self.laboratory.store
        facts = FaultyTables(FaultyFolder(store.facts.root, self.faults), store.control)
        facts.faults, facts.look = self.faults, self._look
        object.__setattr__(store, "facts", facts)

    def _look(self, at: datetime) -> None:
        """Remember what is served, as of the instant of a change."""
        self.seen[at] = self.answer(None)

    def answer(self, as_of: datetime | None) -> Answer:
        """What the tenant answers now, or as of an instant."""
        with open_reader(engine(), self.laboratory.store, CancellationToken(), LookupCaches(), as_of=as_of) as reader:
            everything = Selection.of_days(DayRange.spanning(DAYS))
            charges, topics = (
                b"".join(reader.export(dataset, everything)) for dataset in (CHARGEBACKS, TOPIC_ATTRIBUTIONS)
            )
            return (
                charges,
                topics,
                sums_by(reader, BILLING_LINES, everything, ("product_type",)),
                sums_by(reader, CHARGEBACKS, everything, ("tag:team",)),
            )

    def step(self) -> None:
        """Let something happen outside, then do something; check everything."""
        for _ in range(self.chance.randint(0, 2)):
            self._change()
        self.faults.plan()
        if self.chance.random() < 0.15:
            self.now += timedelta(minutes=self.chance.choice([-90, -5, 30]))
        done = self.chance.choices([self._run, self._back_up_and_restore, self._keep_up], [8, 1, 1])[0]
        try:
            done()
        except Killed:
            pass
        except ChargebackError as error:
            assert self.faults.what, error
        self.faults.what = ""
        self._die()
        self.check()

    def _run(self) -> None:
        self.laboratory.run(self.chance.choice([None, None, None, RECALCULATE, ACCEPT_LESS]))

    def _die(self) -> None:
        """Let the next step find nothing in memory; a lease that was left behind is free."""
        store = self.laboratory.store
        store.facts.changed()
        store.facts._is_alone = False
        with store.control.write() as connection:
            connection.exec_driver_sql("UPDATE tenant SET lease_owner = NULL, lease_expires_at = NULL")
            epoch = connection.exec_driver_sql("SELECT lease_epoch FROM tenant").scalar_one()
        assert epoch >= self.epoch
        self.epoch = epoch

    def _back_up_and_restore(self) -> None:
        """Exchange the storage for a copy of it."""
        store = self.laboratory.store
        made = back_up(store, f"sqlite:///{self._folder}/tenant/acme.db", self._folder / f"backups-{self._backups}")
        self._backups += 1
        store.close()
        for path in (self._folder / "tenant").glob("acme.*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        fresh = TenantStore.open(
            tenant_name=store.tenant_name,
            tenant_id=store.tenant_id,
            ecosystem=store.ecosystem,
            connection_string=f"sqlite:///{self._folder}/tenant/acme.db",
            facts=self._folder / "tenant" / "acme.facts",
        )
        restore(made, fresh, f"sqlite:///{self._folder}/tenant/acme.db")
        self.laboratory.store = fresh
        self._disturb()

    def _keep_up(self) -> None:
        """Remove what nothing names: so far nothing was given up, so that only leftovers of kills go."""
        remove_unnamed(self.laboratory.store.facts, datetime.now(tz=self.now.tzinfo) + 2 * LEFTOVER_AGE)

    def _change(self) -> None:
        """What happens outside between two steps."""
        sources, day = self.laboratory.sources, self.chance.choice(DAYS)
        match self.chance.randint(0, 6):
            case 0:
                sources.lines[day] = [line(str(self.chance.randint(1, 200)), day=day)]
            case 1:
                sources.totals = self.chance.choice([HALF, NINE_TO_ONE])
            case 2:
                sources.topic_totals = {
                    "bytes_in": {("lkc-1", "orders"): self.chance.randint(1, 9), ("lkc-1", "pay"): 1}
                }
            case 3:
                sources.fault = self.chance.choice([None, SourceUnavailable("HTTP 503", source="metrics")])
            case 4:
                sources.lines[day] = sources.lines.get(day, [])[:-1]
            case 5:
                self._tag()
            case _:
                sources.lines.setdefault(day, []).append(line("0.7", day=day, product="KAFKA_BASE"))

    def _tag(self) -> None:
        write = tags.TagWrite(
            "identity", self.chance.choice(["sa-a", "sa-b"]), "team", self.chance.choice("xyz"), Period()
        )
        with self.laboratory.store.control.write() as connection:
            tags.write_many(connection, "t", [write], created_by="test", override=True)

    def check(self) -> None:
        """The laws, after each step."""
        store = self.laboratory.store
        for each in verify(store):
            assert not each.is_wrong, each
        named = catalogue_of(store.facts)
        missing = [each.path for each in named if each.gone_at is None and not (store.facts.root / each.path).exists()]
        assert not missing
        instants = sorted(self.seen)
        for at in self.chance.sample(instants, min(4, len(instants))):
            try:
                assert self.answer(at) == self.seen[at], f"as of {at}"
            except HistoryGone:
                pytest.fail(f"as of {at}: given up")

    def end(self) -> None:
        """Long after the last step only what is named is left."""
        self.faults.what = ""
        facts = self.laboratory.store.facts
        remove_unnamed(facts, datetime.now(tz=self.now.tzinfo) + 2 * LEFTOVER_AGE)
        named = {each.path for each in catalogue_of(facts) if each.gone_at is None}
        there = {file.path for file in facts.place.files() if "date=" in file.path and "_history/" not in file.path}
        assert there == {path for path in named if "date=" in path}
        self.laboratory.store.close()


#: How many histories, of how many steps each.
_HISTORIES, _STEPS = 12, 8
_DRILLED = 1000


@pytest.mark.parametrize(
    "seed",
    [*range(_HISTORIES), *(pytest.param(100 + seed, marks=pytest.mark.drill) for seed in range(_DRILLED))],
)
def test_a_history(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing seed says its number, and happens again in the same way."""
    history = History(tmp_path, seed)
    monkeypatch.setattr(tags, "utc_now", history.tick)
    for _ in range(_STEPS):
        history.step()
    history.end()
