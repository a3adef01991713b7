"""Additional bills: merged into the tenant's days, each with its own failures."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from chargeback.config import load_configuration
from chargeback.ecosystems.contract import GatheredDay
from chargeback.errors import ConfigurationError
from chargeback.model.billing import BillingLine, bill_of
from chargeback.model.days import DayRange, start_of_day
from chargeback.pipeline.bills import own_with
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.reports.focus.columns import FocusLayout
from chargeback.reports.focus.file import focus_batches
from chargeback.reports.statements.as_html import statement_html
from chargeback.reports.statements.compile import compile_statements
from chargeback.reports.tenant_view import TenantView
from tests.ecosystems.focus_files.conftest import row, write_csv
from tests.support.clock import TODAY
from tests.support.focus import focus_source
from tests.support.pipeline import Ran, run_pipeline

DAY = TODAY - timedelta(days=2)
EVEN = {"portions": [{"share": "1", "try": ["even(active)"]}]}
STATIC = {"source": "static", "static_identities": [{"identity_id": "team-a", "identity_type": "team"}]}
SERVER = {"name": "SERVER", "product_category": "x", "rate": "0.5", "cost_quantity": {"type": "fixed", "count": 1}}


def configured(folder: Path, **bill: Any) -> Path:
    """Write the configuration of a tenant whose own bill is 12 a day, and whose cloud bill is in ``cloud``."""
    settings = {"cluster_id": "c", "identity_source": STATIC, "bill": {"files": "cloud"}}
    tenant = {
        "ecosystem": "generic_metrics_only",
        "tenant_id": "it",
        "lookback_days": 4,
        "cutoff_days": 1,
        "storage": {"connection_string": "sqlite:///it.db"},
        "plugin_settings": {
            "cluster_id": "c",
            "identity_source": STATIC,
            "cost_types": [SERVER],
            "allocation_policies": {"*": EVEN},
        },
        "additional_bills": [{"name": "cloud", "ecosystem": "focus", "plugin_settings": settings} | bill],
    }
    settings["bill"] = {"files": str(folder / "cloud")}
    file = folder / "chargeback.yaml"
    file.write_text(yaml.safe_dump({"tenants": {"it": tenant}}), encoding="utf-8")
    return file


def network(cost: str = "0.3", **changes: Any) -> dict[str, Any]:
    """Return a row of the cloud's bill on ``DAY``."""
    period = {"ChargePeriodStart": f"{DAY}T00:00:00Z", "ChargePeriodEnd": f"{DAY + timedelta(days=1)}T00:00:00Z"}
    return row(ServiceName="Network", SkuMeter="EGRESS", EffectiveCost=cost, ListCost=cost, **period) | changes


def bill(ran: Ran, day: date = DAY) -> dict[str, tuple[str, str, Decimal]]:
    """Return ecosystem, currency and cost of each product type."""
    lines = ran.bill(day)
    return {each["product_type"]: (each["ecosystem"], each["currency"], each["total_cost"]) for each in lines}


OWN = ("generic_metrics_only", "USD", Decimal(12))


def test_both_bills_are_charged(tmp_path: Path) -> None:
    """The tenant's bill has the lines of both bills, each marked with its bill, and all are allocated."""
    write_csv(tmp_path / "cloud" / "bill.csv", [network()])
    with run_pipeline(configured(tmp_path), "it") as ran:
        assert ran.result.outcome is RunOutcome.COMPLETED, ran.result.errors
        assert bill(ran) == {"SERVER": OWN, "EGRESS": ("focus", "USD", Decimal("0.3"))}
        assert {each["tier"] for each in ran.bill(DAY)} == {None, "bill=cloud"}
        assert bill(ran, DAY - timedelta(days=1)) == {"SERVER": OWN}
        checks = {check.day: check for check in ran.checks()}
        assert (checks[DAY].chargebacks, checks[DAY].difference) == (Decimal("12.3"), Decimal(0))


def test_each_bill_is_shown_apart(tmp_path: Path) -> None:
    """FOCUS rows have the issuer and the service of their bill; a statement has the amount of each bill."""
    write_csv(tmp_path / "cloud" / "bill.csv", [network()])
    service = {"name": "Data Transfer", "category": "Networking", "subcategory": "Other (Networking)"}
    for focus, issuer in (({}, "cloud"), ({"issuer": "AWS", "services": {"Network": service}}, "AWS")):
        file = configured(tmp_path, focus=focus)
        tenant = load_configuration(file).tenants["it"]
        with run_pipeline(file, "it") as ran, focus_source(ran.store, tenant) as source:
            layout = FocusLayout("1.2", "identities", ("InvoiceIssuerName", "ServiceName", "EffectiveCost"))
            rows = [row for batch in focus_batches(source, layout, DayRange(DAY, TODAY)) for row in batch.to_pylist()]
            name = service["name"] if focus else "Other"
            assert {tuple(each.values()) for each in rows} == {
                (issuer, name, Decimal("0.3")),
                ("it", "Other", Decimal(12)),
            }
            view = TenantView("it", "it", "generic_metrics_only", 4, ran.store)
            month = compile_statements(view, source.reader, DAY, "identity_id")
            found = month.find("team-a")
            assert found is not None
            assert found.bills is not None
            assert found.bills.total.amount == found.amount
            assert [(each.id, each.amount % 12) for each in found.bills.items] == [
                ("generic_metrics_only", Decimal(0)),
                ("focus", Decimal("0.3")),
            ]
            assert "Bills" in statement_html(month, found)


def test_a_bill_that_cannot_be_read_keeps_its_lines(tmp_path: Path) -> None:
    """Stored lines of an unreadable bill are kept, the day is incomplete, and a later run has the new lines."""
    file, cloud = configured(tmp_path), tmp_path / "cloud" / "bill.csv"
    write_csv(cloud, [network()])
    with run_pipeline(file, "it"):
        pass
    cloud.rename(tmp_path / "away.csv")
    with run_pipeline(file, "it") as ran:
        assert ran.result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
        assert "the bill cloud could not be read; its stored lines are kept" in ran.result.errors[0]
        assert bill(ran) == {"SERVER": OWN, "EGRESS": ("focus", "USD", Decimal("0.3"))}
        (check,) = (check for check in ran.checks() if check.day == DAY)
        assert any("bill cloud: " in lacks for lacks in check.incomplete)
    write_csv(cloud, [network("0.2")])
    with run_pipeline(file, "it") as ran:
        assert ran.result.outcome is RunOutcome.COMPLETED, ran.result.errors
        assert bill(ran)["EGRESS"][2] == Decimal("0.2")
        assert not any(check.incomplete for check in ran.checks())


def test_another_currency(tmp_path: Path) -> None:
    """Amounts are converted at their month's rate, which the line has; without a rate, the stored lines are kept."""
    write_csv(tmp_path / "cloud" / "bill.csv", [network(BillingCurrency="EUR")])
    rates = {f"{DAY:%Y-%m}": "1.1"}
    with run_pipeline(configured(tmp_path, currency="EUR", rates=rates), "it") as ran:
        assert bill(ran)["EGRESS"] == ("focus", "USD", Decimal("0.33"))
        assert {each["original_text"] for each in ran.bill(DAY)} == {None, "0.3 EUR × 1.1"}
    with run_pipeline(configured(tmp_path, currency="EUR", rates={"2020-01": "1.1"}), "it") as ran:
        assert any(f"cloud has no rate for {DAY:%Y-%m}" in error for error in ran.result.errors)
        assert bill(ran)["EGRESS"] == ("focus", "USD", Decimal("0.33"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ecosystem": "focuss"}, "additional_bills[0].ecosystem: there is no such ecosystem"),
        ({"name": "My Bill"}, "additional_bills[0].name"),
        ({"currency": "EUR"}, "the additional bill cloud is in EUR: give its rates"),
        ({"plugin_settings": {}}, "additional_bills[0].plugin_settings"),
        ({"focus": {"issuer": ""}}, "additional_bills[0].focus.issuer"),
        (
            {
                "focus": {
                    "services": {
                        "A": {"name": "X", "category": "Networking", "subcategory": "Other (Networking)"},
                        "B": {"name": "X", "category": "Security", "subcategory": "Other (Security)"},
                    }
                }
            },
            "one category and one subcategory",
        ),
    ],
)
def test_bills_that_cannot_be_configured(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """Each mistake is reported with its location."""
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(configured(tmp_path, **changes))
    assert message in str(refused.value)


def test_an_error_of_the_own_bill_is_the_day_s() -> None:
    """A day without its own bill is not replaced, whatever the additional bills have."""
    own = GatheredDay(DAY, error="nothing")
    line = BillingLine(DAY, start_of_day(DAY), "r", "c", "t", Decimal(1), "USD", tier="bill=cloud")
    assert bill_of(line) == "cloud"
    assert own_with(own, {"cloud": GatheredDay(DAY, [line])}, []).gathered is own
