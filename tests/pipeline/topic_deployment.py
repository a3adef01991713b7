"""A tenant whose topics are attributed, run against a served organisation of a few days: a class and its fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from sqlalchemy import select

from chargeback.config import load_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.contract import TopicEcosystem
from chargeback.model.money import total
from chargeback.model.topics import TopicPlan
from chargeback.store.control.schema import topic_failures
from chargeback.store.facts.tables import BILLING_TABLE, TOPICS_TABLE, read_day
from tests.support.clock import TODAY
from tests.support.deployments import Deployment

DAYS = 9
CUTOFF = 5
WINDOW = [TODAY - timedelta(days=offset) for offset in range(DAYS, CUTOFF, -1)]
DAY = WINDOW[1]


class Attributed(Deployment):
    """A tenant whose topics are attributed."""

    @property
    def plan(self) -> TopicPlan:
        """Return the plan of the overlay."""
        ecosystem = self.tenant.ecosystem
        assert isinstance(ecosystem, TopicEcosystem)
        plan = ecosystem.topic_plan(self.tenant.plugin_settings)
        assert plan is not None
        return plan

    def reload(self, **topics: Any) -> None:
        """Change the topic settings for the next runs."""
        document = yaml.safe_load(self.config_file.read_text())
        acme = document["tenants"]["acme"]
        acme["plugin_settings"]["topic_attribution"] |= topics
        self.config_file.write_text(yaml.safe_dump(document))
        self.tenant = load_configuration(self.config_file).tenants["acme"]

    def topics(self, day: date = DAY) -> pa.Table:
        """Return the topic rows of a day."""
        return read_day(self.store.facts, TOPICS_TABLE, day)

    def methods(self, day: date = DAY) -> set[str]:
        """Return the attribution methods of a day's rows."""
        return set(self.topics(day)["attribution_method"].to_pylist())

    def flags(self, day: date = DAY) -> tuple[bool, bool]:
        """Return (overlay gathered, attribution calculated)."""
        state = self.state(day)
        return state.topics.is_measured, state.topics.is_current

    def lines(self, day: date = DAY) -> dict[str, Any]:
        """Return the cost of every line of the day that the overlay attributes, by line id."""
        return {
            row["line_id"]: row["total_cost"]
            for row in read_day(self.store.facts, BILLING_TABLE, day).to_pylist()
            if row["resource_id"].startswith("lkc-") and self.plan.method_of(row["product_type"]) and row["total_cost"]
        }

    def sums(self, day: date = DAY) -> dict[str, Any]:
        """Return the attributed amounts of each line of a day."""
        rows = self.topics(day).to_pylist()
        ids = {row["line_id"] for row in rows}
        return {each: total(row["amount"] for row in rows if row["line_id"] == each) for each in ids}

    def failures(self) -> set[int]:
        """Return the existing failure counts."""
        with self.store.control.read() as connection:
            return set(connection.execute(select(topic_failures.c.failures)).scalars())


@pytest.fixture(scope="module")
def organisation() -> Organisation:
    """Return a small organisation of fewer days than elsewhere."""
    return Organisation.generate(DemoSpec(today=TODAY, size="small", days=DAYS))


@pytest.fixture(scope="module")
def prepared(organisation: Organisation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tenant whose first run has attributed everything; copy it, do not change it."""
    return Attributed.calculated_once(organisation, tmp_path_factory.mktemp("attributed"))


@pytest.fixture
def deployment(server: DemoServer, tmp_path: Path) -> Iterator[Attributed]:
    """Yield a tenant that has never run."""
    deployment = Attributed(server, tmp_path)
    yield deployment
    deployment.store.close()


@pytest.fixture
def attributed(prepared: Path, server: DemoServer, tmp_path: Path) -> Iterator[Attributed]:
    """Yield a tenant whose first run has attributed everything."""
    deployment = Attributed.copied(prepared, server, tmp_path)
    yield deployment
    deployment.store.close()
