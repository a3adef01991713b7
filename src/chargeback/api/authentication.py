"""Who sends a request. Found out once, however many parts of the application ask.

What vouches for a sender is configured (``access.mode``): nothing, a proxy, or the issuer of a signed token. Beside a
proxy and an issuer, tokens of machines (:mod:`chargeback.store.control.access_tokens`) are accepted; a token that does
not hold is refused even if something else vouches for the sender.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection
from starlette.requests import Request

from chargeback.access.caller import Caller, CallerKind, TenantAccess
from chargeback.access.roles import Roles
from chargeback.api.executor import RequestExecutor
from chargeback.api.identity import TOKEN_NAME, Identify, Identity, JwtIdentity, ProxyIdentity
from chargeback.api.limits import CANCELLATION
from chargeback.api.problems import Unauthenticated
from chargeback.api.services import Authenticate, Services, everybody
from chargeback.api.signing_keys import check_keys
from chargeback.config.access import AccessSettings
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control import access_tokens
from chargeback.store.control.access_tokens import AccessToken

#: The key of the request's :class:`Caller` in the scope.
CALLER: Final = "chargeback.caller"

_REFUSED: Final = "The token is unknown, was revoked or has expired; `chargeback token list` shows those of a tenant."


async def authenticated(request: Request) -> Caller:
    """Return who sends a request.

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
    """Return what finds out who sends a request, as configured.

    Raises:
        ConfigurationError: the file with the keys of the issuer of tokens cannot be read.
    """
    match access.mode:
        case "none":
            return everybody
        case "proxy" if access.proxy is not None:
            return Authenticator(access.mode, ProxyIdentity(access.proxy), access.finished_roles())
        case "jwt" if access.jwt is not None:
            if access.jwt.jwks_file is not None:  # an address may be there again soon, a file would have to be made
                check_keys(access.jwt)
            return Authenticator(access.mode, JwtIdentity(access.jwt), access.finished_roles())
        case _:
            raise AssertionError(f"access.{access.mode} is missing")  # the settings make sure that it is there


def authenticate_tokens() -> Authenticate:
    """Return an authenticator that knows the tokens of machines only."""

    async def _nobody(_request: Request, _bearer: str | None) -> Identity:
        raise Unauthenticated(_REFUSED)

    return Authenticator("token", _nobody, Roles(()))


class Authenticator:
    """Finds out who sends a request: a machine with a token, or whom ``identify`` names. Used by the event loop."""

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
        task = executor.write_later(tenant, _write, failed="the use of a token could not be kept")
        task.add_done_callback(lambda _: self._noting.discard(key))


def _bearer_of(request: Request) -> str | None:
    """Return the bearer token of a request; None without one. Other kinds of credentials are not ours.

    Raises:
        Unauthenticated: there are several.
    """
    sent = request.headers.getlist("authorization")
    if len(sent) > 1:
        raise Unauthenticated(f"The request has {len(sent)} headers Authorization; send one.")
    scheme, _, token = "".join(sent).partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
