"""Effects of other policies on some days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.allocation.policies import parse_policies
from chargeback.config.closing import ClosingProfile
from chargeback.errors import StorageError
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import total
from chargeback.recompute.rules import AllocationRules
from chargeback.recompute.simulate import Trial, simulate_days
from chargeback.reports.simulation import MovedByCause, SimulationAnswer, simulation_answer
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import Books, ClosedPeriod, Closing
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from tests.support.clock import NOW
from tests.support.sources import DAY, Laboratory, line

DAYS = DayRange(DAY - ONE_DAY, DAY + ONE_DAY)
WRITE = "KAFKA_NETWORK_WRITE"
MONTH = AccountingPeriod.of(DAY)
#: The methods that the shipped policy tries after usage.
_REST = ("even(active)", "even(period)", "unallocated")
CLOSED = Books((ClosedPeriod(Closing(1, MONTH, "closed", NOW, "", None)),))


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant of two days, in which one identity uses three times as much as another."""
    with Laboratory(tmp_path / "laboratory", days=2) as opened:
        for day in DAYS:
            opened.sources.lines[day] = [line("100", day=day), line("10", day=day, product="NEW")]
        opened.sources.totals = {
            name: {("lkc-1", "sa-a"): 3, ("lkc-1", "sa-b"): 1} for name in ("bytes_in", "bytes_out")
        }
        opened.run()
        yield opened


@contextmanager
def reading(laboratory: Laboratory) -> Iterator[TenantReader]:
    """Yield a reader of the stored data."""
    with (
        QueryEngine(threads=1) as engine,
        open_reader(engine, laboratory.store, CancellationToken(), LookupCaches()) as reader,
    ):
        yield reader


def tried(
    laboratory: Laboratory, folder: Path, books: Books, *methods: str, by: str = "identity_id"
) -> SimulationAnswer:
    """Return the simulation of a policy for the lines and for an unused product type."""
    portions = {"portions": [{"share": "1", "try": list(methods)}]}
    own = parse_policies({WRITE: portions, "UNHEARD_OF": portions}, "policies")
    rules = AllocationRules.of(laboratory.tenant)
    view = TenantView.of(laboratory.tenant, laboratory.store, rules)
    trial = Trial(rules.catalogue.override(own), tuple(own.names), DAYS)
    with reading(laboratory) as reader:
        found = simulate_days(laboratory.store, rules, trial, folder)
        return simulation_answer(view, reader, books, trial, found, [by])


def test_who_pays_what_instead(laboratory: Laboratory, tmp_path: Path) -> None:
    """The largest change comes first; all changes sum to zero, and half of their total is the moved amount."""
    found = tried(laboratory, tmp_path / "even", Books(), "even(active)")
    shown = found.model_dump(mode="json")
    assert shown["items"] == [
        {
            "dimensions": {"identity_id": "sa-a"},
            **{"before": "150.00", "after": "100.00", "delta": "-50.00", "percent": "-33.33"},
        },
        {
            "dimensions": {"identity_id": "sa-b"},
            **{"before": "50.00", "after": "100.00", "delta": "50.00", "percent": "100.00"},
        },
    ]
    assert (shown["billed"], shown["moved"], shown["moved_share"]) == ("220.00", "50.00", "22.73")
    assert shown["unallocated"] == {"before": "20.00", "after": "20.00"}
    assert (found.verdict, found.never_applied, found.never_measured) == ("complete", ["UNHEARD_OF"], [])
    assert [(each.product_type, each.days, each.cost) for each in found.policies] == [(WRITE, 2, Decimal(200))]
    assert [(each.moved, each.cause) for each in found.policies] == [(Decimal(50), "method")]
    assert shown["by_cause"] == dict.fromkeys(MovedByCause.model_fields, "0.00") | {"method": "50.00"}
    assert found.corrections == []


@pytest.mark.parametrize(
    ("tries", "cause"),
    [
        ([("0.5", "usage(bytes_in)"), ("0.5", "usage(bytes_in)")], "portion"),
        ([("1", "even(period)")], "method"),
        ([("1", "usage(bytes_out)")], "measure"),
    ],
)
def test_what_differs_is_the_cause(
    laboratory: Laboratory, tmp_path: Path, tries: list[tuple[str, str]], cause: str
) -> None:
    """The cause is the portions if they differ, else the method, else the measure; nothing moves for another reason."""
    section = {WRITE: {"portions": [{"share": share, "try": [first, *_REST]} for share, first in tries]}}
    rules = AllocationRules.of(laboratory.tenant)
    view = TenantView.of(laboratory.tenant, laboratory.store, rules)
    trial = Trial(rules.catalogue.override(parse_policies(section, "policies")), (WRITE,), DAYS)
    with reading(laboratory) as reader:
        simulated = simulate_days(laboratory.store, rules, trial, tmp_path / cause)
        found = simulation_answer(view, reader, Books(), trial, simulated, ["identity_id"])
    assert [each.cause for each in found.policies] == [cause]
    assert getattr(found.by_cause, cause) == found.moved == found.policies[0].moved
    assert total(getattr(found.by_cause, name) for name in MovedByCause.model_fields) == found.moved


def test_what_is_split_in_proportion_follows(laboratory: Laboratory, tmp_path: Path) -> None:
    """A proportional line keeps its policy, and its cost follows the other lines."""
    section = {"NEW": {"portions": [{"share": "1", "try": ["proportional", "unallocated"]}]}}
    now = AllocationRules.of(laboratory.tenant)
    rules = replace(now, catalogue=now.catalogue.override(parse_policies(section, "policies")))
    evenly = {WRITE: {"portions": [{"share": "1", "try": ["even(active)"]}]}}
    view = TenantView.of(laboratory.tenant, laboratory.store, rules)
    before = simulate_days(laboratory.store, now, Trial(rules.catalogue, (), DAYS), tmp_path / "before")
    trial = Trial(rules.catalogue.override(parse_policies(evenly, "policies")), (WRITE,), DAYS)
    with reading(laboratory) as reader:
        simulated = simulate_days(laboratory.store, rules, trial, tmp_path / "after")
        stored = reader.with_files(CHARGEBACKS_TABLE, [each.file for each in before.days if each.file is not None])
        found = simulation_answer(view, stored, Books(), trial, simulated, ["identity_id"])
    assert [each.product_type for each in found.policies] == [WRITE]
    causes = found.by_cause
    assert (causes.method, causes.proportional, causes.earlier) == (Decimal(50), Decimal(5), Decimal(0))


def test_what_an_earlier_policy_calculated_moves_for_no_new_reason(laboratory: Laboratory, tmp_path: Path) -> None:
    """What moves because the policies changed earlier, without a date, has the cause ``earlier``."""
    now = AllocationRules.of(laboratory.tenant)
    evenly = {WRITE: {"portions": [{"share": "1", "try": ["even(active)"]}]}}
    earlier = replace(now, catalogue=now.catalogue.override(parse_policies(evenly, "policies")))
    view = TenantView.of(laboratory.tenant, laboratory.store, earlier)
    trial = Trial(earlier.catalogue, (), DAYS)
    with reading(laboratory) as reader:
        simulated = simulate_days(laboratory.store, earlier, trial, tmp_path / "same")
        found = simulation_answer(view, reader, Books(), trial, simulated, ["identity_id"])
    assert found.policies == []
    assert found.by_cause.earlier == found.moved == 50


def test_a_measure_that_nobody_gathers_makes_it_incomplete(laboratory: Laboratory, tmp_path: Path) -> None:
    """A measure that is not gathered makes the simulation incomplete; the next method splits the cost."""
    found = tried(laboratory, tmp_path / "requests", Books(), "usage(requests)", "even(active)")
    assert (found.verdict, found.never_measured) == ("incomplete", ["requests"])
    assert found.moved == 50


def test_corrections_of_closed_months_are_shown_before_they_are_posted(laboratory: Laboratory, tmp_path: Path) -> None:
    """Corrections of closed months are listed by the groupings and values of the closing."""
    object.__setattr__(laboratory.tenant, "closing", ClosingProfile(by=("identity_id",)))
    found = tried(laboratory, tmp_path / "closed", CLOSED, "even(active)", by="product_type")
    assert found.items == []
    assert [(each.period_id, each.value, each.delta) for each in found.corrections] == [
        (MONTH.id, "sa-a", Decimal(-50)),
        (MONTH.id, "sa-b", Decimal(50)),
    ]


def test_days_that_are_calculated_again_meanwhile_are_not_compared(laboratory: Laboratory, tmp_path: Path) -> None:
    """A simulation of days that were recalculated after the reader was opened raises an error."""
    rules = AllocationRules.of(laboratory.tenant)
    view = TenantView.of(laboratory.tenant, laboratory.store, rules)
    trial = Trial(rules.catalogue, (), DAYS)
    with reading(laboratory) as reader:
        laboratory.sources.lines[DAY] = [line("101")]
        laboratory.run()
        found = simulate_days(laboratory.store, rules, trial, tmp_path / "late")
        with pytest.raises(StorageError, match="simulate again"):
            simulation_answer(view, reader, Books(), trial, found, ["identity_id"])


def test_a_change_may_be_of_any_size(laboratory: Laboratory, tmp_path: Path) -> None:
    """A change of any size has a percentage."""
    for day in DAYS:
        laboratory.sources.lines[day] = [line("0.000000000004" if day == DAY else "10000000000000000000", day=day)]
    laboratory.run()
    found = tried(laboratory, tmp_path / "large", Books(), "even(active)")
    assert total(each.delta for each in found.items) == 0
    assert all(each.percent is not None for each in found.items)
