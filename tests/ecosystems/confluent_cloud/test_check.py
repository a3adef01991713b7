"""What `check --online` finds."""

from __future__ import annotations

from typing import Any

import pytest

from chargeback.demo.faults import Fault
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud import ecosystem
from chargeback.ecosystems.contract import Finding, TenantContext
from tests.ecosystems.confluent_cloud.conftest import settings_for


def findings(server: DemoServer, context: TenantContext, **settings: Any) -> dict[str, Finding]:
    """The findings by subject."""
    with ecosystem.open(context, settings_for(server, **settings)) as gatherer:
        return {finding.subject: finding for finding in gatherer.check()}


def wrong(found: dict[str, Finding]) -> set[str]:
    """What does not work, but for the metrics: the generated ones end at the generated today."""
    return {subject for subject, finding in found.items() if not finding.ok and not subject.startswith("metric ")}


def test_all_is_well(server: DemoServer, context: TenantContext) -> None:
    """Every credential and list is tried."""
    found = findings(server, context)
    assert wrong(found) == set()
    assert {"organization", "environments", "users", "service accounts", "API keys", "costs"} <= found.keys()
    assert any(subject.startswith("Flink region") for subject in found)


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("/billing/v1/costs", "costs"),
        ("/iam/v2/api-keys", "API keys"),
        ("/flink/aws.us-east-1", "Flink region us-east-1"),
    ],
)
def test_what_is_refused_is_named(path: str, subject: str, server: DemoServer, context: TenantContext) -> None:
    """One finding says which part is refused and why; the others go on."""
    server.faults.add(path, Fault(status=403, times=None))
    found = findings(server, context)
    assert wrong(found) == {subject}
    assert "403" in found[subject].detail


def test_mistakes_in_topic_settings_are_found(server: DemoServer, context: TenantContext) -> None:
    """A topic setting that cannot be used is a finding."""
    found = findings(server, context, topic_attribution={"enabled": True, "retention_days": 0})
    assert wrong(found) == {"topic attribution"}


def test_no_metrics_source_is_a_finding(server: DemoServer, context: TenantContext) -> None:
    """Without metrics everything is split evenly; that should be known."""
    assert "metrics" in wrong(findings(server, context, metrics=None, topic_attribution=None))


def test_a_region_that_does_not_exist_is_found(server: DemoServer, context: TenantContext) -> None:
    """A typing error in a region is told."""
    flink = [{"region_id": "us-moon-1", "key": "K", "secret": "S"}]
    assert wrong(findings(server, context, flink=flink)) == {"Flink region us-moon-1"}
