"""The provider's control plane: one client, the rate limits of the organization, and paged lists."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings
from chargeback.ecosystems.contract import TenantContext
from chargeback.errors import SourceDataError, SourceError, SourceRejected
from chargeback.sources.credentials import Credentials
from chargeback.sources.rate_limit import RateLimiter
from chargeback.sources.replies import Classifier, Reply, classify_json
from chargeback.sources.requests import INTERACTIVE_LIMITS, WRONG_CREDENTIALS, Call, Limits

if TYPE_CHECKING:
    from chargeback.sources.http import HttpClient

logger = logging.getLogger(__name__)

#: Redirects with credentials may lead to other hosts in this domain, and listed Flink addresses must be in it.
DOMAIN = "confluent.cloud"
PAGE_SIZE = 100
_MAX_PAGES = 10_000
# Enough for a whole inventory, or a year of costs, without waiting; later requests are limited.
_COSTS_BURST = 30
_BURST = 60

_WRONG_KEY = (
    "; a Cloud API key (resource management) is needed here: the key of a Kafka cluster, a Schema Registry or a Flink "
    "region does not work"
)

Page = list[dict[str, Any]]


def classify_cloud_response(reply: Reply) -> SourceError | None:
    """Classify a response of the control plane; the error for a refused key (401) names the most frequent reason."""
    error = classify_json(reply)
    if isinstance(error, SourceRejected) and reply.status == WRONG_CREDENTIALS:
        return SourceRejected(error.message + _WRONG_KEY, status=reply.status)
    return error


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A request for a list: its path, filters and page size, and the function that classifies responses.

    ``bucket`` names the rate limit that applies.
    """

    path: str
    params: Mapping[str, str]
    page_size: int = PAGE_SIZE
    classify: Classifier = classify_cloud_response
    bucket: str = "control-plane"


class ControlPlane:
    """The control plane, accessed with one tenant's Cloud API key. May be used from several threads."""

    def __init__(self, context: TenantContext, settings: ConfluentCloudSettings, limits: Limits | None = None) -> None:
        from chargeback.sources.http import HttpClient

        self._context = context
        self._settings = settings
        within = INTERACTIVE_LIMITS if context.is_awaited else limits
        self._connect = partial(HttpClient, stop=context.stop, limits=within, trusted_domain=DOMAIN)
        self._organization = settings.organization_id
        self._organization_known = settings.organization_id is not None
        self._limiters: dict[str, RateLimiter] = {}
        self._regional: dict[tuple[str, str], HttpClient] = {}
        self._lock = Lock()
        api = settings.ccloud_api
        its = Credentials.basic(api.key, api.secret.get_secret_value())
        self.client = self._connect(api.url, source="ccloud_api", credentials=its)

    def close(self) -> None:
        """Close every connection."""
        for client in (self.client, *self._regional.values()):
            client.close()

    def organizations(self) -> list[dict[str, Any]]:
        """Return the organizations that the key can access, normally one, whose id is cached.

        Raises:
            SourceError: they cannot be listed.
        """
        found = list(self.list("/org/v2/organizations"))
        ids = sorted(required(each, "id") for each in found)
        if len(ids) > 1:
            logger.warning("the key sees %s organizations; set organization_id to choose one", len(ids))
        self._remember(ids[0] if len(ids) == 1 else None)
        return found

    def organization_id(self) -> str | None:
        """Return the organization's id, fetched once; None if the key has no access to it.

        Raises:
            SourceUnavailable: it could not be fetched now. (Not None: the id is part of the billing lines.)
            SourceRejected: the key itself is not valid.
        """
        if not self._organization_known:
            try:
                self.organizations()
            except SourceRejected as refusal:
                if refusal.status == WRONG_CREDENTIALS:
                    raise
                logger.warning("the organization id cannot be read: %s", refusal)
                self._remember(None)
        return self._organization

    def _remember(self, organization: str | None) -> None:
        with self._lock:
            if not self._organization_known:
                self._organization, self._organization_known = organization, True

    def limiter(self, bucket: str) -> RateLimiter:
        """Return the rate limit of the organization (of the key, until the organization is known) for a kind of
        call."""
        api, costs = self._settings.ccloud_api, bucket == "costs"
        with self._lock:
            whose = f"organization {self._organization}" if self._organization else f"key {api.key}"
            key = "\n".join((api.url, whose, bucket))
            if key not in self._limiters:
                rate = self._settings.billing_api.requests_per_second if costs else api.requests_per_second
                burst = _COSTS_BURST if costs else _BURST
                self._limiters[key] = RateLimiter(self._context.state_dir, key, rate=rate, burst=burst)
            return self._limiters[key]

    def list(self, path: str, **params: str) -> Iterator[dict[str, Any]]:
        """Yield every object of a list, page by page. An object on two pages is yielded once."""
        seen: set[str] = set()
        for page in self.pages(ListRequest(path, params)):
            for each in page:
                key = identity_of(each)
                if key is None or key not in seen:
                    yield each
                if key is not None:
                    seen.add(key)

    def get(self, path: str, **params: str) -> Any:
        """Return a document that is not paged."""
        return self.client.read_json(
            Call(path, params, classify=classify_cloud_response, limiter=self.limiter("control-plane"))
        )

    def pages(self, listing: ListRequest) -> Iterator[Page]:
        """Yield the pages of a list (see :func:`read_pages`)."""
        return read_pages(self.client, listing, lambda: self.limiter(listing.bucket))

    def flink(self, address: str, key: str, secret: str) -> HttpClient:
        """Return the client for a regional Flink address with that region's own key."""
        with self._lock:
            if (address, key) not in self._regional:
                its = Credentials.basic(key, secret)
                self._regional[address, key] = self._connect(address, source="flink", credentials=its)
            return self._regional[address, key]


def read_pages(client: HttpClient, listing: ListRequest, limiter: Callable[[], RateLimiter]) -> Iterator[Page]:
    """Yield the pages of a list: ``{"data": […] or null, "metadata": {"next": address with a page_token, or
    nothing}}``.

    ``limiter()`` returns the rate limit of the next request. Only the token is taken from ``next``; the address is
    always the configured one, so that no response can redirect requests. ``page_size`` is sent with the first request
    only.

    Raises:
        SourceDataError: the response has another shape, or the pages repeat.
    """

    def _mistake(text: str) -> SourceDataError:
        return SourceDataError(f"{client.address_of(listing.path)}: {text}", source=client.source)

    params = {**listing.params, "page_size": str(listing.page_size)}
    tokens: set[str] = set()
    contents: set[bytes] = set()
    for _ in range(_MAX_PAGES):
        document = client.read_json(Call(listing.path, params, classify=listing.classify, limiter=limiter()))
        page, token = _page(document, _mistake)
        if token is None and not contents:
            yield page
            return
        # Equal rows are normal on a bill; equal pages are an error.
        content = hashlib.blake2b(json.dumps(page, sort_keys=True, default=str).encode()).digest()
        if token in tokens or (len(page) > 1 and content in contents):
            raise _mistake("the list repeats pages")
        yield page
        if token is None:
            return
        tokens.add(token)
        contents.add(content)
        params = {**listing.params, "page_token": token}
    raise _mistake(f"the list has more than {_MAX_PAGES} pages")


def _page(document: Any, mistake: Callable[[str], SourceDataError]) -> tuple[Page, str | None]:
    """Return the objects of a page, and the token of the next one; ``mistake`` makes the error of another shape."""
    if not isinstance(document, dict) or not ({"data", "metadata", "kind"} & document.keys()):
        raise mistake("the response is not a list of objects")
    data, metadata = document.get("data"), document.get("metadata")
    data = [] if data is None else data
    metadata = {} if metadata is None else metadata
    if not isinstance(data, list) or not all(isinstance(each, dict) for each in data) or not isinstance(metadata, dict):
        raise mistake("the response is not a list of objects")
    following = metadata.get("next")
    if following is None or following == "":
        return data, None
    tokens = parse_qs(urlsplit(following).query).get("page_token") if isinstance(following, str) else None
    if not tokens or not tokens[0]:
        raise mistake("the next page has no page_token")
    return data, tokens[0]


def identity_of(each: Mapping[str, Any]) -> str | None:
    """Return the id of a listed object, or None."""
    value = each.get("id")
    return value if isinstance(value, str) and value else None


def required(each: Mapping[str, Any], *path: str) -> str:
    """Return the text at a path of keys, which is required.

    Raises:
        SourceDataError: it is missing.
    """
    value = optional(each, *path)
    if value is None:
        raise SourceDataError(f"an object has no {'.'.join(path)}", source="ccloud_api")
    return value


def optional(each: Any, *path: str) -> str | None:
    """Return the text at a path of keys, or None; an empty text is None."""
    for key in path:
        each = each.get(key) if isinstance(each, dict) else None
    return each if isinstance(each, str) and each else None
