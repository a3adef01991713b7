"""Verification of topic rows; that of chargebacks is tested with the runs."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.cli.display import aligned
from chargeback.model.billing import MONEY
from chargeback.model.run_request import RunRequest
from chargeback.recompute.verify import (
    ATTRIBUTED,
    NOT_ATTRIBUTED,
    PAST_RETENTION,
    PENDING,
    TopicCheck,
    verify,
    verify_topics,
)
from chargeback.store.control.days import save_day
from chargeback.store.facts.tables import TOPICS_TABLE
from tests.pipeline.topic_deployment import DAY, WINDOW, Attributed, attributed, deployment, organisation, prepared
from tests.support.clock import TODAY
from tests.support.days import set_chargebacks
from tests.support.facts import Share, line, replace_day, tenant_store, write_lines, write_shares

__all__ = ["attributed", "deployment", "organisation", "prepared"]

EPOCH = 10**6


def checks(deployment: Attributed) -> dict[date, TopicCheck]:
    """Return the result of the verification of each day."""
    return {check.day: check for check in verify_topics(deployment.store, deployment.plan, TODAY)}


def test_what_is_attributed_is_right(attributed: Attributed) -> None:
    """Attributed and left-out costs sum to the clusters' bill; only types that are not attributed are left out."""
    found = checks(attributed)
    assert sorted(found) == WINDOW
    for day, check in found.items():
        assert (check.state, check.is_wrong) == (ATTRIBUTED, False)
        assert check.attributed + check.left_out == check.billed
        assert check.attributed == sum(attributed.lines(day).values())


def test_a_line_that_differs(attributed: Attributed) -> None:
    """A difference of one unit in one row is found."""
    rows = attributed.topics()
    amounts = rows["amount"].to_pylist()
    amounts[0] -= Decimal(1).scaleb(-12)
    position = rows.schema.get_field_index("amount")
    changed = rows.set_column(position, rows.schema.field("amount"), pa.array(amounts, MONEY))
    replace_day(attributed.store.facts, TOPICS_TABLE, DAY, changed)
    found = checks(attributed)
    assert (found[DAY].is_wrong, found[DAY].wrong_lines) == (True, 1)
    assert not any(check.is_wrong for day, check in found.items() if day != DAY)


def test_sums_beyond_every_amount_are_exact(tmp_path: Path) -> None:
    """A bill whose sum has more digits than an amount may have is compared exactly."""
    large = Decimal(9).scaleb(25)
    with tenant_store(tmp_path) as store:
        with store.control.write() as connection:
            save_day(connection, DAY, billing_gathered=True)
            set_chargebacks(connection, DAY)
        write_lines(store.facts, [line(DAY, str(large), resource=f"lkc-{number}") for number in range(5)])
        for last, difference in ((large, Decimal(0)), (large - 1, Decimal(-1))):
            write_shares(store.facts, [Share(DAY, f"sa-{n}", str(large if n else last)) for n in range(5)])
            (check,) = verify(store)
            assert check.billing == 5 * large
            assert check.difference == difference
            assert check.is_wrong == bool(difference)
            assert aligned([check.billing, check.chargebacks])[0].strip() == "450000000000000000000000000.00"


def test_rows_that_are_gone(attributed: Attributed) -> None:
    """A line whose rows are all missing is wrong, not left out."""
    rows = attributed.topics()
    replace_day(attributed.store.facts, TOPICS_TABLE, DAY, rows.slice(0, 0))
    check = checks(attributed)[DAY]
    assert (check.is_wrong, check.lost_rows) == (True, rows.num_rows)


def test_rows_of_a_line_that_is_not_billed(attributed: Attributed) -> None:
    """Rows of a line that is not billed are found."""
    rows = attributed.topics()
    position = rows.schema.get_field_index("line_id")
    strangers = rows.set_column(position, rows.schema.field("line_id"), [["stranger"] * rows.num_rows])
    replace_day(attributed.store.facts, TOPICS_TABLE, DAY, strangers)
    assert checks(attributed)[DAY].wrong_lines == 1


def test_skipped_and_disabled_lines_are_listed_as_left_out(deployment: Attributed) -> None:
    """Skipped and disabled lines are left out, not wrong."""
    deployment.reload(
        missing_metrics_behavior="skip",
        cost_mapping_overrides={"KAFKA_BASE": "disabled"},
        metric_name_overrides={"topic_retained_bytes": "no_such_metric"},
    )
    deployment.run()
    check = checks(deployment)[DAY]
    skipped = sum(cost for line, cost in deployment.lines().items() if line not in deployment.sums())
    assert not check.is_wrong
    assert check.left_out > skipped > 0


@pytest.mark.extensive
def test_pending_earlier_and_expired_days_are_no_failures(deployment: Attributed) -> None:
    """Pending, earlier and expired days are listed with their state and are not wrong."""
    deployment.reload(enabled=False)
    deployment.run()
    deployment.reload(enabled=True)
    assert {check.state for check in checks(deployment).values()} == {NOT_ATTRIBUTED}
    deployment.lose_metrics()
    deployment.configure(allocation_retry_limit=1)
    deployment.reload(retention_days=(TODAY - WINDOW[-1]).days)
    deployment.run(RunRequest(recalculate=True))
    found = checks(deployment)
    assert [found[day].state for day in WINDOW[-2:]] == [PAST_RETENTION, PENDING]
    assert not any(check.is_wrong for check in found.values())
