"""Authentication: the caller of a request, determined once per request.

``access.mode`` configures how callers are identified: not at all, by a proxy (:class:`ProxyIdentity`), or by the issuer
of a signed token (:mod:`chargeback.api.jwt_identity`). In addition to a proxy or an issuer, tokens of machines
(:mod:`chargeback.store.control.access_tokens`) are accepted; an invalid one is refused even if the proxy names a user.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from sqlalchemy import Connection
from starlette.requests import Request

from chargeback.access.caller import ANONYMOUS, Caller, CallerKind, TenantAccess
from chargeback.access.roles import Roles
from chargeback.api.executor import RequestExecutor
from chargeback.api.limits import CANCELLATION
from chargeback.api.problems import Unauthenticated
from chargeback.api.services import Authenticate, Services, everybody
from chargeback.config.access import AccessSettings, ProxySettings
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control import access_tokens
from chargeback.store.control.access_tokens import AccessToken
from chargeback.store.control.audit import COMMAND_LINE

log = logging.getLogger(__name__)

#: The prefix of the names of tokens in the audit log; no name of a user may begin with it.
TOKEN_NAME: Final = "token:"  # noqa: S105 - not a secret

_MAX_LENGTH: Final = 255
_MAX_GROUPS: Final = 1000
_OUR_OWN: Final = frozenset({ANONYMOUS, COMMAND_LINE})


@dataclass(frozen=True)
class SenderIdentity:
    """The name of a user, and of the user's groups."""

    user: str
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, user: str, groups: Iterable[str] = ()) -> Self:
        """Return the identity of a user, if its names are valid and differ from the names that this service uses.

        Raises:
            Unauthenticated: a name is not valid, or the user has too many groups.
        """
        name, found = user.strip(), tuple(each for group in groups if (each := group.strip()))
        if not name or name in _OUR_OWN or name.startswith(TOKEN_NAME):
            raise Unauthenticated(f"{name!r} cannot be the name of a user.")
        if any(len(each) > _MAX_LENGTH or not each.isprintable() for each in (name, *found)):
            raise Unauthenticated(
                f"The name of the user or of a group has more than {_MAX_LENGTH} characters, or some that cannot be "
                "shown."
            )
        if len(found) > _MAX_GROUPS:
            raise Unauthenticated(
                f"The user is in {len(found):,} groups, more than {_MAX_GROUPS:,}; let the identity provider send only "
                "those that access.roles names."
            )
        return cls(name, found)


#: Returns the identity of the sender of a request, given the bearer token of the request, if it has one.
Identify = Callable[[Request, str | None], Awaitable[SenderIdentity]]


SECRET_HEADER: Final = "X-Chargeback-Proxy-Secret"  # noqa: S105 - not a secret

_MAX_LOGGED_PEERS: Final = 100
_NOT_THE_PROXY: Final = (
    "This request did not come through the proxy that authenticates users. Use the address at which the proxy "
    "serves it, or a token (`Authorization: Bearer cb_…`)."
)


class ProxyIdentity:
    """Returns the user that an authenticating proxy names in its headers."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        secret = settings.shared_secret
        self._secret = None if secret is None else secret.get_secret_value().encode()
        self._logged: set[str] = set()

    async def __call__(self, request: Request, _bearer: str | None) -> SenderIdentity:
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
                f"The proxy did not name the user: it sends no header {settings.user_header} "
                "(access.proxy.user_header)."
            )
        groups = _only_value(request, settings.groups_header) if settings.groups_header else ""
        return SenderIdentity.of(user, groups.split(","))

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
        Unauthenticated: there are several; the client may have sent one of them.
    """
    values = request.headers.getlist(header)
    if len(values) > 1:
        raise Unauthenticated(
            f"The request has {len(values)} headers {header}, so the client may have sent one of them; let the proxy "
            "replace the header instead of adding one."
        )
    try:
        return "".join(values).encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise Unauthenticated(f"The header {header} is not UTF-8.") from None


#: The key of the request's :class:`Caller` in the scope.
CALLER: Final = "chargeback.caller"

_REFUSED: Final = "The token is unknown, was revoked or has expired; `chargeback token list` shows those of a tenant."


async def authenticated(request: Request) -> Caller:
    """Return the caller of a request.

    Raises:
        Unauthenticated: the request is not authenticated.
    """
    known: Caller | None = request.scope.get(CALLER)
    if known is not None:
        return known
    services: Services = request.app.state.services
    caller = await services.authenticate(request)
    request.scope[CALLER] = caller
    return caller


def authenticate_by(access: AccessSettings) -> Authenticate:
    """Return the configured authentication of requests.

    Raises:
        ConfigurationError: the file with the keys of the issuer of tokens cannot be read.
    """
    match access.mode:
        case "none":
            return everybody
        case "proxy" if access.proxy is not None:
            return Authenticator(access.mode, ProxyIdentity(access.proxy), access.finished_roles())
        case "jwt" if access.jwt is not None:
            from chargeback.api.jwt_identity import JwtIdentity  # cryptography: other services start without it
            from chargeback.api.signing_keys import check_keys

            if access.jwt.jwks_file is not None:  # an address may respond later; a missing file has to be created
                check_keys(access.jwt)
            return Authenticator(access.mode, JwtIdentity(access.jwt), access.finished_roles())
        case _:
            raise AssertionError(f"access.{access.mode} is missing")  # the settings validate this


def authenticate_tokens() -> Authenticate:
    """Return an authenticator that knows the tokens of machines only."""

    async def _no_user(_request: Request, _bearer: str | None) -> SenderIdentity:
        raise Unauthenticated(_REFUSED)

    return Authenticator("token", _no_user, Roles(()))


class Authenticator:
    """Returns the caller of a request: the machine that owns its token, or the user that ``identify`` returns. Used by
    the event loop."""

    def __init__(self, kind: CallerKind, identify: Identify, roles: Roles) -> None:
        self._kind = kind
        self._identify = identify
        self._roles = roles
        self._noting: set[tuple[str, int]] = set()

    async def __call__(self, request: Request) -> Caller:
        """Return the caller.

        Raises:
            Unauthenticated: the request is not authenticated.
        """
        bearer = _bearer_of(request)
        if bearer is not None and bearer.startswith(access_tokens.PREFIX):
            return await self._machine(request, bearer)
        identity = await self._identify(request, bearer)
        return self._roles.caller(identity.user, self._kind, identity.groups)

    async def _machine(self, request: Request, secret: str) -> Caller:
        """Return the machine that has a token."""
        services: Services = request.app.state.services
        executor: RequestExecutor = request.app.state.executor
        tenant = services.tenants.get(access_tokens.tenant_of(secret) or "")
        if tenant is None:
            raise Unauthenticated(_REFUSED)
        context = executor.context_for(request.scope[CANCELLATION])
        token = await context.read_control(tenant, lambda connection: access_tokens.find_token(connection, secret))
        now = services.clock()
        if token is None or not token.holds(now):
            raise Unauthenticated(_REFUSED)
        if token.last_used_at is None or token.last_used_at < now - access_tokens.USE_PRECISION:
            self._note_use(executor, tenant, token, services)
        only: Mapping[str, TenantAccess] = {tenant.tenant_name: token.access}
        return Caller(f"{TOKEN_NAME}{token.name}", "token", (), only.get)

    def _note_use(self, executor: RequestExecutor, tenant: TenantView, token: AccessToken, services: Services) -> None:
        """Record in the background that a token was used."""
        key = (tenant.tenant_name, token.id)
        if key in self._noting:
            return

        def _write(connection: Connection) -> None:
            access_tokens.note_use(connection, token.id, services.clock())

        self._noting.add(key)
        task = executor.write_later(tenant, _write, failed="the use of a token could not be recorded")
        task.add_done_callback(lambda _: self._noting.discard(key))


def _bearer_of(request: Request) -> str | None:
    """Return the bearer token of a request, or None. Other kinds of credentials are ignored.

    Raises:
        Unauthenticated: there are several.
    """
    sent = request.headers.getlist("authorization")
    if len(sent) > 1:
        raise Unauthenticated(f"The request has {len(sent)} headers Authorization; send one.")
    scheme, _, token = "".join(sent).partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
