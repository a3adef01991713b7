"""The findings of `check --online`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from chargeback.demo.faults import Fault
from chargeback.demo.server import DemoServer
from chargeback.ecosystems.confluent_cloud import ecosystem
from chargeback.ecosystems.confluent_cloud.check import LISTS
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.model.inventory import GRANT
from tests.ecosystems.confluent_cloud.conftest import settings_for
from tests.support.openmetrics import Scrapes
from tests.support.processes import free_port
from tests.support.prometheus import RealPrometheus

EMPTY = Fault(status=200, body='{"data": [], "metadata": {}}', times=None)


def findings(server: DemoServer, context: TenantContext, **settings: Any) -> dict[str, Finding]:
    """Return the findings by subject."""
    with ecosystem.open(context, settings_for(server, **settings)) as gatherer:
        return {finding.subject: finding for finding in gatherer.check()}


def wrong(found: dict[str, Finding]) -> set[str]:
    """Return the subjects of failures, except those of metrics, whose samples end at the generated today."""
    return {subject for subject, finding in found.items() if not finding.ok and not subject.startswith("metric ")}


def doubtful(found: dict[str, Finding]) -> set[str]:
    """Return the subjects of successes with a warning."""
    return {subject for subject, finding in found.items() if finding.warning and not subject.startswith("metric ")}


def test_all_is_well(server: DemoServer, context: TenantContext) -> None:
    """Every credential and list is checked."""
    found = findings(server, context)
    assert (wrong(found), doubtful(found)) == (set(), set())
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
    """One finding names the rejected part with the reason; the other checks continue."""
    server.faults.add(path, Fault(status=403, times=None))
    found = findings(server, context)
    assert wrong(found) == {subject}
    assert "403" in found[subject].detail


def test_every_list_of_a_run_is_tested(server: DemoServer, context: TenantContext) -> None:
    """The check requests every list that a run requests, for every environment and cluster, and reports each type."""
    with ecosystem.open(context, settings_for(server)) as gatherer:
        listed = gatherer.inventory()
        requested = set(server.requests)
        server.requests.clear()
        found = {finding.subject for finding in gatherer.check()}
        assert requested - set(server.requests) == set()
    assert listed.complete - {"organization", "flink_statement", GRANT} == LISTS.keys()
    assert set(LISTS.values()) <= found


@pytest.mark.parametrize(
    ("path", "failed", "warned"),
    [
        ("/cmk/v2/clusters", {"clusters"}, {"connectors"}),
        ("/iam/v2/service-accounts", {"service accounts"}, set()),
        ("/connect/v1/", set(), {"connectors"}),
        ("/srcm/v3/clusters", set(), {"schema registries"}),
        ("/ksqldbcm/v2/clusters", set(), {"ksqlDB clusters"}),
        ("/fcpm/v2/compute-pools", set(), {"compute pools"}),
        ("/iam/v2/identity-providers", set(), {"identity providers", "identity pools"}),
    ],
)
def test_a_denied_list_fails_if_a_run_would(
    path: str, failed: set[str], warned: set[str], server: DemoServer, context: TenantContext
) -> None:
    """A denied list fails the check if it is required; otherwise it is a warning that says how runs are affected."""
    server.faults.add(path, Fault(status=403, times=None))
    found = findings(server, context)
    assert (wrong(found), doubtful(found)) == (failed, warned)
    assert all("HTTP 403" in found[subject].detail for subject in failed | warned)
    assert all("every run completes with this error" in found[subject].detail for subject in warned)


def test_a_list_denied_in_one_environment_fails(server: DemoServer, context: TenantContext) -> None:
    """A list that is denied in only one environment fails."""
    server.faults.add("/cmk/v2/clusters", Fault(status=403, skip=1, times=1))
    assert wrong(findings(server, context)) == {"clusters"}


def test_a_wrong_key_fails_with_a_configured_organization(server: DemoServer, context: TenantContext) -> None:
    """If the organization's id is configured, a wrong key still fails, once."""
    api = {"key": server.key, "secret": "wrong", "url": server.url}
    found = findings(server, context, ccloud_api=api, organization_id="org-1")
    assert wrong(found) == {"organization"}
    assert "clusters" in found["not tried"].detail


def test_a_configured_organization_that_is_not_visible(server: DemoServer, context: TenantContext) -> None:
    """If the organization's id is configured and the list of organizations is denied, the check warns."""
    server.faults.add("/org/v2/organizations", Fault(status=403, times=None))
    found = findings(server, context, organization_id="org-1")
    assert "organization" in doubtful(found)
    assert "org-1, as configured, but " in found["organization"].detail


def test_a_key_that_is_not_a_cloud_key(server: DemoServer, context: TenantContext) -> None:
    """An unknown key fails once, with a hint at the most frequent mistake; other checks with the key are reported as
    not tried, and metrics are checked."""
    api = {"key": server.key, "secret": "wrong", "url": server.url}
    found = findings(server, context, ccloud_api=api)
    assert wrong(found) == {"organization"}
    assert f"GET {server.url}/org/v2/organizations: HTTP 401: " in found["organization"].detail
    assert "a Cloud API key (resource management) is needed here" in found["organization"].detail
    assert "environments, clusters, schema registries, " in found["not tried"].detail
    assert {subject for subject in found if subject.startswith("metric ")}
    assert server.requests["/iam/v2/users"] == 0


def test_a_flink_key_that_is_not_known(server: DemoServer, context: TenantContext) -> None:
    """The finding of a rejected Flink key says which key is needed."""
    flink = [{"region_id": each.region_id, "key": "K", "secret": "S", "url": each.url} for each in server.info.flink]
    found = findings(server, context, flink=flink[:1])
    subject = f"Flink region {flink[0]['region_id']}"
    assert wrong(found) == {subject}
    assert "a Flink key of this region is needed here" in found[subject].detail


def test_metrics_that_cannot_be_reached(server: DemoServer, context: TenantContext) -> None:
    """An unreachable metrics source fails once, with its address, for any number of metrics."""
    url = f"http://127.0.0.1:{free_port()}"
    found = findings(server, context, metrics={"url": url})
    metrics = {subject: each for subject, each in found.items() if subject.startswith("metric ")}
    assert [f"POST {url}/api/v1/query: no connection" in each.detail for each in metrics.values()] == [True]
    assert "metric bytes_out" in found["not tried"].detail


def test_mistakes_in_topic_settings_are_found(server: DemoServer, context: TenantContext) -> None:
    """An invalid topic setting is a warning, because everything else works."""
    found = findings(server, context, topic_attribution={"enabled": True, "retention_days": 0})
    assert (wrong(found), "topic attribution" in doubtful(found)) == (set(), True)
    assert "retention_days" in found["topic attribution"].detail


def test_no_metrics_source_is_a_finding(server: DemoServer, context: TenantContext) -> None:
    """Without a metrics source, costs are split evenly, which is a warning."""
    found = findings(server, context, metrics=None, topic_attribution=None)
    assert (wrong(found), doubtful(found)) == (set(), {"metrics"})


def test_a_region_that_does_not_exist_is_found(server: DemoServer, context: TenantContext) -> None:
    """A misspelled region is reported."""
    flink = [{"region_id": "us-moon-1", "key": "K", "secret": "S"}]
    assert wrong(findings(server, context, flink=flink)) == {"Flink region us-moon-1"}


@pytest.mark.parametrize(
    ("path", "subject", "said"),
    [
        ("/flink/aws.us-east-1", "Flink region us-east-1", "no statements in env-"),
        ("/iam/v2/users", "users", "does this key have permission to see them?"),
        ("/billing/v1/costs", "costs", "nothing was billed"),
        ("/org/v2/organizations", "organization", "not visible to this key"),
    ],
)
def test_an_empty_answer_deserves_a_look(
    path: str, subject: str, said: str, server: DemoServer, context: TenantContext
) -> None:
    """A key that works but returns nothing is a warning, because it may see too little."""
    server.faults.add(path, EMPTY)
    found = findings(server, context)
    assert subject in doubtful(found)
    assert said in found[subject].detail


def test_what_may_be_empty_is_not_doubted(server: DemoServer, context: TenantContext) -> None:
    """An organization without identity providers is normal and not a warning."""
    server.faults.add("/iam/v2/identity-providers", EMPTY)
    found = findings(server, context)
    assert (wrong(found), doubtful(found)) == (set(), set())


@pytest.mark.usefixtures("process")
def test_a_metric_without_a_sample_of_the_last_day(server: DemoServer, context: TenantContext) -> None:
    """A metric that has samples, but none within the last day, is a warning; a metric without any samples is an
    error."""
    seen = Scrapes(context.today - timedelta(days=3), context.today, every=30)
    now = (context.now() - seen.start) // timedelta(minutes=1)
    seen.gauge("fresh", {}, lambda minute: 1 if minute <= now else None)
    seen.gauge("stale", {}, lambda minute: 1 if minute <= now - 26 * 60 else None)
    names = {"bytes_in": "fresh", "bytes_out": "stale", "flink_cfu_minutes": "never"}
    with RealPrometheus(seen.text()) as prometheus:
        metrics = {"url": prometheus.url}
        found = findings(server, context, metrics=metrics, metric_names=names, topic_attribution=None)
    levels = [(found[f"metric {name}"].ok, found[f"metric {name}"].warning) for name in names]
    assert levels == [(True, False), (True, True), (False, False)]
    assert "1 series within 15 days, but no sample of the last day" in found["metric bytes_out"].detail
