"""From an alert in a real Alertmanager to its explanation, in a real browser."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import update

from chargeback.api.app import create_app
from chargeback.config.notifications import AlertmanagerSettings
from chargeback.model.days import ONE_DAY, DayRange, utc_now
from chargeback.page.serve import BUILT
from chargeback.pipeline.notify import DeliveryMetrics, Notifier
from chargeback.store.control import schema
from tests.page.test_web import CHROMIUM, artifacts, node
from tests.support.alertmanager import running_alertmanager
from tests.support.serving import served, services_for
from tests.support.sources import DAY, Laboratory, line

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("process")]
LENGTH = 30
DAYS = DayRange(DAY - (LENGTH - 1) * ONE_DAY, DAY + ONE_DAY)


def test_from_an_alert_to_its_explanation(tmp_path: Path) -> None:
    """Two clicks lead to the explanation: on the link of the alert, and on its main cause."""
    assert CHROMIUM is not None, "`make test` installs Debian's chromium-headless-shell"
    assert (BUILT / "index.html").exists(), "`make page` builds the page"
    with Laboratory(tmp_path / "laboratory", days=LENGTH) as laboratory, running_alertmanager() as alertmanager:
        laboratory.share(DAYS)
        for day in DAYS:
            quantity = Decimal(300 if day == DAY else 100)
            laboratory.sources.lines[day] = [
                line(f"{quantity}", day=day, quantity=quantity, unit_price=Decimal(1), unit="GB")
            ]
        sink = {"type": "alertmanager", "url": alertmanager, "allow_private": True}
        laboratory.configure(notifications={"alerts": AlertmanagerSettings.model_validate(sink)})
        laboratory.run()
        with laboratory.store.control.write() as connection:
            connection.execute(update(schema.events).values(at=utc_now()))
        with served(create_app(services_for(laboratory.store))) as address:
            metrics = DeliveryMetrics(CollectorRegistry())
            worker = Notifier(laboratory.tenant, laboratory.store, f"{address}/ui", metrics, utc_now)
            worker.deliver(threading.Event())
            worker.alert()
            places = {"BASE": f"{address}/ui/", "ALERTMANAGER": alertmanager}
            node("--test", "tests/browser/alert.test.ts", **places, CHROMIUM=CHROMIUM, ARTIFACTS=artifacts())
