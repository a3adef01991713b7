"""Flink statements: their owners and compute pools, listed at the regional addresses.

Facts: ``sql/v1`` in the provider's OpenAPI. A Flink key is scoped to a region and an environment (or is Global); the
Cloud key of the control plane is not accepted there. ``/fcpm/v2/regions`` has the addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from chargeback.ecosystems.confluent_cloud import objects
from chargeback.ecosystems.confluent_cloud.api import DOMAIN, ControlPlane, ListRequest, optional, read_pages
from chargeback.ecosystems.confluent_cloud.settings import FlinkRegion
from chargeback.errors import SourceDataError, SourceError, SourceRejected
from chargeback.model.inventory import Resource
from chargeback.sources.replies import Reply, classify_json
from chargeback.sources.requests import WRONG_CREDENTIALS

logger = logging.getLogger(__name__)

STATEMENTS = "/sql/v1/organizations/{organization}/environments/{environment}/statements"


@dataclass(frozen=True, slots=True)
class Region:
    """A region in the provider's list: ``aws.us-east-1``, ``AWS``, ``us-east-1``, its address."""

    region_id: str
    cloud: str
    name: str
    address: str | None

    def has(self, pool: Resource) -> bool:
        """Return whether the pool is in this region."""
        cloud = str(pool.metadata.get("cloud") or "")
        return pool.metadata.get("region") == self.name and cloud.upper() == self.cloud.upper()


class FlinkStatements:
    """Lists the statements of all environments with compute pools in a region that has a configured key.

    ``unseen`` names the regions with compute pools but without a configured key.
    """

    def __init__(self, control_plane: ControlPlane, keys: Sequence[FlinkRegion]) -> None:
        self._control_plane = control_plane
        self._keys = keys
        self.unseen: set[str] = set()

    @property
    def configured(self) -> bool:
        """Return whether any key is configured; without one, no statements are expected."""
        return bool(self._keys)

    def of(self, pools: Sequence[Resource]) -> Iterator[Resource]:
        """Yield the statements of all environments and regions of ``pools``.

        Raises:
            SourceError: one of them could not be listed, or no key of its region has access.
        """
        if not pools:
            return
        organization = self._control_plane.organization_id()
        if organization is None:
            raise SourceDataError("statements need the organization's id: set organization_id", source="flink")
        regions = list(self.regions())
        for region in regions:
            environments = sorted({pool.parent_id for pool in pools if region.has(pool) and pool.parent_id})
            if environments and not self.keys_of(region):
                logger.warning("no Flink key for region %s: its statements have no owners", region.region_id)
                self.unseen.add(region.region_id)
                continue
            for environment in environments:
                yield from self._environment(organization, environment, region)
        if lost := sorted(pool.resource_id for pool in pools if not any(region.has(pool) for region in regions)):
            raise SourceDataError(f"the regions of {', '.join(lost)} are not listed", source="flink")

    def regions(self) -> Iterator[Region]:
        """Yield the provider's regions."""
        for each in self._control_plane.list("/fcpm/v2/regions"):
            name, cloud = optional(each, "region_name"), optional(each, "cloud")
            if name and cloud:
                region_id = optional(each, "id") or f"{cloud.lower()}.{name}"
                yield Region(region_id, cloud, name, optional(each, "http_endpoint"))

    def address(self, key: FlinkRegion, region: Region) -> str:
        """Return the address for this key: the configured one, else the listed one if it is the provider's own.

        Raises:
            SourceDataError: the key must not be sent to any known address.
        """
        if key.url:
            return key.url
        if region.address and _is_provider_address(region.address, self._control_plane.client.base_url):
            return region.address.rstrip("/")
        raise SourceDataError(f"region {region.region_id} has no trusted address: set `url`", source="flink")

    def keys_of(self, region: Region) -> list[FlinkRegion]:
        """The configured keys for a region."""
        names = {region.region_id.lower(), region.name.lower()}
        return [key for key in self._keys if key.region_id.lower() in names]

    def _environment(self, organization: str, environment: str, region: Region) -> Iterator[Resource]:
        """Yield the statements of one environment, listed with the first key that has access to it."""
        refusal: SourceError = SourceDataError(f"no key for region {region.region_id}", source="flink")
        for key in self.keys_of(region):
            try:
                yield from self.list(key, region, organization, environment)
            except SourceRejected as refused:
                if refused.status not in {401, 403, 404}:
                    raise
                refusal = refused
            else:
                return
        raise refusal

    def list(self, key: FlinkRegion, region: Region, organization: str, environment: str) -> list[Resource]:
        """Return the statements of one environment in one region, listed with one key."""
        path = STATEMENTS.format(organization=quote(organization, safe=""), environment=quote(environment, safe=""))
        client = self._control_plane.flink(self.address(key, region), key.key, key.secret.get_secret_value())
        pages = read_pages(
            client, ListRequest(path, {}, classify=_classify), lambda: self._control_plane.limiter("flink")
        )
        return [objects.flink_statement(each, environment) for page in pages for each in page]


def _classify(reply: Reply) -> SourceError | None:
    """Classify a response; the error for a refused key (401) names the most frequent reason."""
    error = classify_json(reply)
    if isinstance(error, SourceRejected) and reply.status == WRONG_CREDENTIALS:
        return SourceRejected(f"{error.message}; a Flink key of this region is needed here", status=reply.status)
    return error


def _is_provider_address(address: str, control_plane: str) -> bool:
    """Return whether an address lies in the provider's domain, or is on the host that listed it."""
    import httpx

    try:
        there, here = httpx.URL(address), httpx.URL(control_plane)
    except httpx.InvalidURL:
        return False
    if there.scheme == "https" and (there.host == DOMAIN or there.host.endswith(f".{DOMAIN}")):
        return True
    return there.scheme == here.scheme and there.host == here.host and bool(there.host)
