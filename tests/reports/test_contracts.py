"""The state of contracts, from the bill of a tenant."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from focus_data_toolkit import lint_focus_1_4_structure

from chargeback.config.contracts import ContractSettings
from chargeback.ecosystems.focus import FocusProfile
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.closing.focus_invoices import focus_csv_text
from chargeback.reports.contracts import ContractItem, Standing
from chargeback.reports.focus.columns import FocusLayout
from chargeback.reports.focus.commitments import FocusContractCommitment, contract_commitments
from chargeback.reports.focus.file import FocusSource, focus_csv
from chargeback.reports.focus.lookups import FocusTenant
from chargeback.store.control.adjustments import read_adjustments
from chargeback.store.control.days import read_days
from chargeback.store.control.events import read_events
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, Laboratory, line

LENGTH = 20
DAYS = DayRange(DAY - (LENGTH - 1) * ONE_DAY, DAY + ONE_DAY)
TODAY = NOW.date()


def contract(**more: Any) -> ContractSettings:
    """Return a contract over the days, of 1,500 for all costs, with further settings."""
    values: dict[str, Any] = {
        **{"id": "main", "issuer": "Provider", "start_date": DAYS.start, "end_date": DAY + timedelta(days=30)},
        "commitments": [{"id": "all", "amount": "1500", "interval": "term"}],
    }
    return ContractSettings.model_validate(values | more)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield twenty days of 50 for a cluster and 10 for a connector, and a credit."""
    with Laboratory(tmp_path / "laboratory", days=LENGTH) as opened:
        opened.share(DAYS)
        opened.sources.lines = {
            day: [line("50", day=day, quantity=Decimal(5), unit="GB"), line("10", day=day, product="CONNECT_CAPACITY")]
            for day in DAYS
        }
        opened.sources.lines[DAY].append(line("-20", day=DAY, product="PROMO_CREDIT"))
        yield opened


@contextmanager
def looking(laboratory: Laboratory, *contracts: ContractSettings, today: date = TODAY) -> Iterator[Standing]:
    """Yield the state of contracts after a run."""
    laboratory.configure(contracts=contracts)
    laboratory.run()
    with laboratory.store.control.read() as connection:
        states = {each.tracking_date: each for each in read_days(connection)}
    with (
        closing(QueryEngine()) as engine,
        open_reader(engine, laboratory.store, CancellationToken(), LookupCaches()) as reader,
    ):
        yield Standing.of(reader, states, contracts, today)


def standing(laboratory: Laboratory, *contracts: ContractSettings, today: date = TODAY) -> list[ContractItem]:
    """Return the state of contracts after a run as response items."""
    with looking(laboratory, *contracts, today=today) as found:
        return [found.item(each, "USD") for each in contracts]


def told(laboratory: Laboratory) -> list[tuple[str, str]]:
    """Return the events of contracts, each with its commitment."""
    with laboratory.store.control.read() as connection:
        found = read_events(connection, after=0, kind=None, limit=99)
    return [
        (each["kind"], each["body"].get("commitment", "")) for each in found if each["kind"].startswith("contract.")
    ]


def test_what_is_drawn_is_what_was_billed(laboratory: Laboratory) -> None:
    """A commitment draws what was billed, and has its pace, the pending days and the expected day of exhaustion."""
    (item,) = standing(laboratory, contract())
    (now,) = item.commitments[0].intervals
    assert (item.billed, item.applied, item.not_applied) == (Decimal(1180), Decimal(1180), Decimal(0))
    assert (now.drawn, now.remaining, now.is_over) == (Decimal(1180), Decimal(320), False)
    assert (now.counted_days, now.pending_days) == (LENGTH, (TODAY - DAY).days - 1)
    assert now.pace == pytest.approx(1180 / (1500 * LENGTH / (LENGTH + 30)), abs=1e-4)
    assert now.exhausted_on is not None
    assert now.exhausted_on.p50 == DAY + timedelta(days=6)
    assert now.shortfall == 0


def test_contracts_share_the_bill(laboratory: Laboratory) -> None:
    """Contracts share the bill by priority, each for the costs that it covers; a commitment of usage has the unit of
    the bill."""
    connect = contract(
        id="connect",
        commitments=[
            {
                **{"id": "capacity", "amount": "150", "interval": "term", "priority": 1},
                "applies_to": {"product_type": ["CONNECT_CAPACITY"]},
            },
            {"id": "traffic", "kind": "usage", "quantity": "1000", "unit": "GB", "interval": "term", "priority": 200},
        ],
    )
    main, other = standing(laboratory, contract(), connect)
    assert (main.applied, main.applied_to_others, main.not_applied) == (Decimal(1030), Decimal(150), Decimal(0))
    capacity, traffic = other.commitments
    assert (capacity.intervals[0].drawn, capacity.intervals[0].overage) == (Decimal(150), Decimal(0))
    assert (traffic.intervals[0].drawn, traffic.applies_to) == (Decimal(0), {})


def test_an_interval_that_is_over(laboratory: Laboratory) -> None:
    """The rest of an interval that is over is exact; an interval that has not begun is not listed."""
    ended = contract(end_date=DAY)
    later = contract(id="later", start_date=date(2030, 1, 1), end_date=date(2030, 12, 31))
    first, second = standing(laboratory, ended, later)
    (now,) = first.commitments[0].intervals
    assert (now.is_over, now.shortfall, now.exhausted_on) == (True, Decimal(320), None)
    assert (second.commitments[0].intervals, second.data_through, second.billed) == ([], None, Decimal(0))


def test_a_tenant_without_a_bill(laboratory: Laboratory) -> None:
    """Without a bill, nothing is drawn."""
    laboratory.sources.lines = {}
    (item,) = standing(laboratory, contract())
    assert item.billed == 0


def test_what_is_told_of_contracts(laboratory: Laboratory) -> None:
    """There is one event for each interval that is used up or too slow, and one for a contract that ends soon."""
    commitments = [
        {"id": "small", "amount": "100", "interval": "term", "priority": 1},
        {"id": "much", "amount": "90000", "interval": "term"},
    ]
    contracts = contract(commitments=commitments, end_date=DAY + timedelta(days=15))
    standing(laboratory, contracts)
    laboratory.run()
    assert sorted(told(laboratory)) == [
        ("contract.ending", ""),
        ("contract.exhausted", "small"),
        ("contract.pace", "much"),
    ]


def test_the_end_is_told_without_news_of_the_bill(laboratory: Laboratory) -> None:
    """The event comes sixty days before the end, even if the bill is unchanged."""
    standing(laboratory, contract(end_date=DAY + timedelta(days=80)))
    assert told(laboratory) == []
    laboratory.clock = FixedClock(NOW + timedelta(days=25))
    laboratory.run()
    assert [kind for kind, _ in told(laboratory)] == ["contract.ending"]


def over(**shortfall: Any) -> ContractSettings:
    """Return a contract of 2,000 that has ended with 820 left."""
    commitment = {"id": "all", "amount": "2000", "interval": "term", "shortfall": shortfall}
    return contract(end_date=DAY, commitments=[commitment])


def posted(laboratory: Laboratory) -> list[tuple[str, str, str, str]]:
    """Return month, grouping, recipient and amount of the adjustments."""
    with laboratory.store.control.read() as connection:
        made = [each.made for each in read_adjustments(connection)]
    return [(each.period.id, each.grouping, each.value, f"{each.amount:f}") for each in made]


def test_what_is_left_is_posted(laboratory: Laboratory) -> None:
    """The shortfall is posted once, split by charges in cents that sum to it; a late bill posts the difference."""
    standing(laboratory, over(by="identity_id"))
    first = posted(laboratory)
    month = f"{DAY:%Y-%m}"
    assert [each[:3] for each in first] == [(month, "identity_id", who) for who in ("sa-a", "sa-b")]
    assert sum(Decimal(each[3]) for each in first) == 820
    assert posted(laboratory) == first
    laboratory.sources.lines[DAY].append(line("100", day=DAY, product="SUPPORT"))
    standing(laboratory, over(by="identity_id"))
    assert sum(Decimal(each[3]) for each in posted(laboratory)) == 720
    assert posted(laboratory)[: len(first)] == first
    standing(laboratory, over(by="identity_id"))
    assert sum(Decimal(each[3]) for each in posted(laboratory)) == 720


def test_one_value_pays_for_what_is_left(laboratory: Laboratory) -> None:
    """A configured value pays the shortfall, and a new payer reverses that; without a payer, nothing is posted. A
    commitment with rollover cannot have a shortfall."""
    standing(laboratory, contract(end_date=DAY))
    assert posted(laboratory) == []
    laboratory.sources.lines[DAY] = laboratory.sources.lines[DAY][:2]
    standing(laboratory, over(by="category:cost_center", value="platform"))
    once = (f"{DAY:%Y-%m}", "category:cost_center", "platform", "800.00")
    assert posted(laboratory) == [once]
    laboratory.sources.lines[DAY] = laboratory.sources.lines[DAY][:1]
    standing(laboratory, over(by="identity_id", value="sa-a"))
    back = (*once[:3], "-800.00")
    assert posted(laboratory) == [once, back, (once[0], "identity_id", "sa-a", "810.00")], "somebody else pays"
    with pytest.raises(ValueError, match="a shortfall is posted of commitments of spend that are not rolled over"):
        contract(
            commitments=[
                {"id": "a", "amount": "1", "interval": "monthly", "rollover": True, "shortfall": {"by": "identity_id"}}
            ]
        )


def test_contracts_in_focus(laboratory: Laboratory) -> None:
    """An independent lint finds no mistake, and every commitment has its status."""
    usage = {"kind": "usage", "quantity": "50", "unit": "GB", "applies_to": {"resource_id": ["lkc-1", "lkc-2"]}}
    several = [{"id": "all", "amount": "1500", "interval": "term"}, {"id": "traffic", "interval": "monthly", **usage}]
    contracts = [
        contract(commitments=several),
        contract(id="past", start_date=date(2025, 1, 1), end_date=date(2025, 12, 31)),
        contract(id="next", start_date=date(2027, 1, 1), end_date=date(2027, 3, 31)),
    ]
    with looking(laboratory, *contracts) as found:
        made = contract_commitments(contracts, found, "USD")
    rows = list(csv.DictReader(io.StringIO(focus_csv_text(made, FocusContractCommitment), newline="")))
    report = lint_focus_1_4_structure("ContractCommitment", rows)
    assert report.ok, report
    assert not lint_focus_1_4_structure("ContractCommitment", [row | {"ContractId": ""} for row in rows]).ok
    assert [
        (row["ContractCommitmentId"], row["ContractCommitmentLifecycleStatus"], row["ContractCommitmentDurationType"])
        for row in rows
    ] == [
        ("main/all", "Active", "50 Days"),
        ("main/traffic", "Exhausted", "50 Days"),
        ("past/all", "Expired", "1 Year"),
        ("next/all", "Pending", "3 Months"),
    ]
    applicability = json.loads(rows[1]["ContractCommitmentApplicability"])
    assert applicability["Inclusions"] == [{"Dimension": "ResourceId", "Operator": "In", "Values": ["lkc-1", "lkc-2"]}]
    assert [(row["ContractCommitmentCost"], row["ContractCommitmentUnit"]) for row in rows[:2]] == [
        ("1500.00", ""),
        ("", "GB"),
    ]


@pytest.mark.parametrize("split", ["identities", "none"])
def test_what_each_charge_went_to_in_focus(laboratory: Laboratory, split: str) -> None:
    """The rows of each commitment sum exactly to what is drawn from it, and an independent lint finds no mistake."""
    usage = {"kind": "usage", "quantity": "33", "unit": "GB", "applies_to": {"resource_id": ["lkc-1"]}}
    contracts = [
        contract(commitments=[{"id": "all", "amount": "700.5", "interval": "term"}]),
        contract(id="traffic", commitments=[{"id": "gb", "interval": "term", "priority": 1, **usage}]),
    ]
    for day in DAYS:  # lines with the same key, and amounts that do not divide evenly
        laboratory.sources.lines[day] += [
            line("0.000000000007", day=day, quantity=Decimal("0.1"), unit="GB"),
            line("3.333333333333", day=day, quantity=Decimal(1), unit="GB", product="KAFKA_STORAGE"),
        ]
    with looking(laboratory, *contracts) as found:
        items = {each.id: found.item(each, "USD").commitments[0].intervals[0] for each in contracts}
    with (
        closing(QueryEngine()) as engine,
        open_reader(engine, laboratory.store, CancellationToken(), LookupCaches()) as reader,
    ):
        whose = FocusTenant("acme", "acme", FocusProfile(), tuple(contracts))
        source = FocusSource(reader, laboratory.store.control, whose)
        text = b"".join(map(bytes, focus_csv(source, FocusLayout("1.4", split), DAYS))).decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert "ContractApplied" not in str(lint_focus_1_4_structure("CostAndUsage", rows))
    broken = [row | {"ContractApplied": row["ContractApplied"].replace("ContractId", "Contract")} for row in rows]
    assert "ContractApplied" in str(lint_focus_1_4_structure("CostAndUsage", broken))
    sums: dict[str, Decimal] = {}
    for text in (row["ContractApplied"] for row in rows if row["ContractApplied"]):
        for each in json.loads(text, parse_float=Decimal, parse_int=Decimal)["Elements"]:
            amount = each.get("ContractCommitmentAppliedCost") or each.get("ContractCommitmentAppliedQuantity")
            sums[each["ContractId"]] = sums.get(each["ContractId"], Decimal(0)) + amount
            assert each.get("ContractCommitmentAppliedUnit") == (None if each["ContractId"] == "main" else "GB")
    assert sums == {name: item.drawn for name, item in items.items()}
    assert items["main"].overage > 0, "some of it crosses the limit"
