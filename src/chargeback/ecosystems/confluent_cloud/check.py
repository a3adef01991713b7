"""``chargeback check --online``: try every credential and address once, and say what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

from chargeback.ecosystems.confluent_cloud.api import ControlPlane, Listing, required
from chargeback.ecosystems.confluent_cloud.costs import COSTS
from chargeback.ecosystems.confluent_cloud.flink import FlinkStatements
from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings, FlinkRegion
from chargeback.ecosystems.confluent_cloud.topics import TopicSettings, topic_settings
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.errors import SourceDataError, SourceError, SourceRejected
from chargeback.model.days import ONE_DAY, utc_now
from chargeback.sources.prometheus import PrometheusClient

_LISTS = {
    "environments": "/org/v2/environments",
    "users": "/iam/v2/users",
    "service accounts": "/iam/v2/service-accounts",
    "API keys": "/iam/v2/api-keys",
    "identity providers": "/iam/v2/identity-providers",
}
_COSTS_ARE_COMPLETE_AFTER = timedelta(days=4)


class Checks:
    """Asks one small question of each kind."""

    def __init__(
        self,
        context: TenantContext,
        settings: ConfluentCloudSettings,
        control_plane: ControlPlane,
        metrics: PrometheusClient | None,
    ) -> None:
        self._context = context
        self._settings = settings
        self._control_plane = control_plane
        self._metrics = metrics

    def run(self) -> Iterator[Finding]:
        """One finding per credential, list and metric."""
        yield _try("organization", self._organization)
        for subject, path in _LISTS.items():
            yield _try(subject, partial(self._first_page, Listing(path, {})))
        yield _try("costs", self._costs)
        for key in self._settings.flink:
            yield _try(f"Flink region {key.region_id}", partial(self._flink, key))
        yield from self._metric_findings()
        topics = topic_settings(self._settings)
        if isinstance(topics, str):
            yield Finding("topic attribution", ok=False, detail=topics)

    def _organization(self) -> str:
        return (
            self._control_plane.organization_id()
            or "not visible to this key; costs without a resource go by the tenant id"
        )

    def _first_page(self, listing: Listing) -> str:
        page = next(iter(self._control_plane.pages(listing)))
        return f"{len(page)} on the first page"

    def _costs(self) -> str:
        day = self._context.today - _COSTS_ARE_COMPLETE_AFTER
        params = {"start_date": day.isoformat(), "end_date": (day + ONE_DAY).isoformat()}
        return f"{day}: {self._first_page(Listing(COSTS, params, bucket='costs'))}"

    def _flink(self, key: FlinkRegion) -> str:
        """List the statements of the environments that the key is for; those of others are refused to it."""
        statements = FlinkStatements(self._control_plane, [key])
        organization = self._control_plane.organization_id()
        if organization is None:
            raise SourceRejected("statements need the organization's id: set organization_id", source="flink")
        region = next((each for each in statements.regions() if statements.keys_of(each)), None)
        if region is None:
            raise SourceRejected("the provider lists no such region", source="flink")
        refusal: SourceError = SourceRejected("there is no environment", source="flink")
        for environment in self._control_plane.list("/org/v2/environments"):
            try:
                found = statements.list(key, region, organization, required(environment, "id"))
            except SourceRejected as refused:
                refusal = refused
            else:
                return f"{region.region_id}: {len(found)} statements in {environment['id']}"
        raise refusal

    def _metric_findings(self) -> Iterator[Finding]:
        if self._metrics is None:
            yield Finding("metrics", ok=False, detail="no metrics source: everything is split without usage")
            return
        names = dict(self._settings.metric_names.model_dump())
        topics = topic_settings(self._settings)
        if isinstance(topics, TopicSettings) and topics.enabled:
            names |= topics.metric_name_overrides.model_dump()
        for measure, metric in names.items():
            yield _try(f"metric {measure}", partial(self._series, metric))

    def _series(self, metric: str) -> str:
        if self._metrics is None:
            raise SourceDataError("no metrics source")
        found = self._metrics.instant(f"count(last_over_time({metric}[1d]))", utc_now())
        if not found:
            raise SourceDataError(f"{metric}: no series within the last day")
        return f"{metric}: {found[0].value} series within the last day"


def _try(subject: str, attempt: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, ok=True, detail=attempt())
    except SourceError as error:
        return Finding(subject, ok=False, detail=str(error))
