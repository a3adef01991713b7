"""Identities from the headers of an authenticating proxy (``access.mode: proxy``).

Anybody can send such headers. They are believed only if the request comes from the proxy: from one of its addresses,
with its secret, or both if both are configured. Headers of others are dropped.
"""

from __future__ import annotations

import hmac
import logging
from typing import Final

from starlette.requests import Request

from chargeback.api.identity import Identity
from chargeback.api.problems import Unauthenticated
from chargeback.config.access import ProxySettings

log = logging.getLogger(__name__)

SECRET_HEADER: Final = "X-Chargeback-Proxy-Secret"  # noqa: S105 - not a secret

_MAX_LOGGED_PEERS: Final = 100
_NOT_THE_PROXY: Final = (
    "This request did not come through the proxy that says who its users are. Use the address at which the proxy "
    "serves it, or a token (`Authorization: Bearer cb_…`)."
)


class ProxyIdentity:
    """Says who sends a request, as the proxy says."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        secret = settings.shared_secret
        self._secret = None if secret is None else secret.get_secret_value().encode()
        self._logged: set[str] = set()

    async def __call__(self, request: Request, _bearer: str | None) -> Identity:
        """Return the identity in the headers.

        Raises:
            Unauthenticated: the request does not come from the proxy, or does not name exactly one user.
        """
        settings = self._settings
        if not self._is_from_proxy(request):
            raise Unauthenticated(_NOT_THE_PROXY)
        user = _only_value(request, settings.user_header)
        if not user:
            raise Unauthenticated(
                f"The proxy has not said who the user is: it sends no header {settings.user_header} "
                "(access.proxy.user_header)."
            )
        groups = _only_value(request, settings.groups_header) if settings.groups_header else ""
        return Identity.of(user, groups.split(","))

    def _is_from_proxy(self, request: Request) -> bool:
        peer = request.client.host if request.client else ""
        if self._settings.trusts(peer) and self._has_secret(request):
            return True
        if self._settings.user_header in request.headers and len(self._logged) < _MAX_LOGGED_PEERS:
            if peer not in self._logged:
                log.warning(
                    "ignoring the header %s of requests from %s: %s; if this is the proxy, change that",
                    self._settings.user_header,
                    peer,
                    "they are without the secret of access.proxy.shared_secret"
                    if self._settings.trusts(peer)
                    else "the address is not in access.proxy.trusted",
                )
            self._logged.add(peer)
        return False

    def _has_secret(self, request: Request) -> bool:
        if self._secret is None:
            return True
        sent = request.headers.getlist(SECRET_HEADER)
        return len(sent) == 1 and hmac.compare_digest(sent[0].encode("latin-1"), self._secret)


def _only_value(request: Request, header: str) -> str:
    """Return the value of a header, in UTF-8; empty if there is none.

    Raises:
        Unauthenticated: there are several, one of which may be the client's own.
    """
    values = request.headers.getlist(header)
    if len(values) > 1:
        raise Unauthenticated(
            f"The request has {len(values)} headers {header}, one of which may be the client's own; let the proxy "
            "replace the header instead of adding one."
        )
    try:
        return "".join(values).encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise Unauthenticated(f"The header {header} is not UTF-8.") from None
