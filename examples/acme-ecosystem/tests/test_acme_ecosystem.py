"""The ecosystem keeps its contract, and the costs in ACME's files are charged to the right teams."""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from acme_ecosystem import ecosystem

from chargeback.testing import check_ecosystem

TODAY = date(2026, 1, 31)
DAY = TODAY - timedelta(days=5)


def test_a_delivery(tmp_path: Path) -> None:
    """Each team pays for its buckets and for its requests."""
    folder = tmp_path / "invoices"
    folder.mkdir()
    (folder / "costs.csv").write_text(
        f"date,bucket,product,cost\n{DAY},photos,ACME_STORAGE,10.00\n{DAY},photos,ACME_REQUESTS,3.00\n"
    )
    (folder / "buckets.csv").write_text("bucket,team\nphotos,web\n")
    (folder / "requests.csv").write_text(
        f"date,bucket,team,requests\n{DAY},photos,web,1000\n{DAY},photos,mobile,2000\n"
    )
    report = check_ecosystem(ecosystem, {"invoice_folder": "invoices"}, folder=tmp_path, today=TODAY)
    assert report.billed == Decimal("13.00")
    assert report.charged(DAY) == {"mobile": Decimal("2.00"), "web": Decimal("11.00")}
