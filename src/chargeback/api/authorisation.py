"""Authorisation: compares the right that a route declares with the rights of the caller.

Every route declares the right that it needs, see :mod:`~chargeback.api.routing`. This is checked before anything else
of a request is read. Which rows a route may read is not decided here: its readers have the caller's scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from chargeback.access.caller import ANONYMOUS, Caller, Right, TenantAccess
from chargeback.api.authentication import authenticated
from chargeback.api.parameters import CSV_TYPE
from chargeback.api.problems import ApiError, Forbidden, NotFound, Unauthenticated
from chargeback.api.refusals import RefusalLog
from chargeback.api.services import Services
from chargeback.errors import ChargebackError

#: The keys of a declaration in the OpenAPI document.
NEEDS: Final = "x-needs"
WHOLE: Final = "x-whole-bill"
#: The key of the :class:`TenantAccess` of a request in its scope.
ACCESS: Final = "chargeback.access"

_TENANT: Final = "tenant_name"


class Access(StrEnum):
    """Who may call a route without a tenant in its path: authenticated callers, or everyone."""

    AUTHENTICATED = "identity"
    PUBLIC = "nothing"


Needs = Right | Access


@dataclass(frozen=True)
class RequiredAccess:
    """The right that a route ``needs``; ``whole`` means that its response is about the whole bill, so that callers with
    a scope are refused."""

    needs: Needs
    whole: bool = False

    def declaration(self) -> dict[str, Any]:
        """Return the declaration as it is in the OpenAPI document."""
        return {NEEDS: self.needs.value} | ({WHOLE: True} if self.whole else {})

    @classmethod
    def of(cls, route: BaseRoute) -> RequiredAccess | None:
        """Return the declaration of a route, or None if it has none."""
        found = getattr(route, "required", None)
        return found if isinstance(found, RequiredAccess) else None

    def sentence(self) -> str:
        """Return the declaration as a sentence for the documentation."""
        match self.needs:
            case Access.PUBLIC:
                return "Needs no identity."
            case Access.AUTHENTICATED:
                return "Needs an identity, and no right."
        scope = ", without a scope: the response is about the whole bill." if self.whole else "."
        return f"Needs the right `{self.needs}`{scope}"


def require_declarations(routes: Sequence[BaseRoute]) -> None:
    """Check that every route of the API declares what it needs, so that none is public by mistake.

    Raises:
        ValueError: one does not.
    """
    for route in api_routes(routes):
        if RequiredAccess.of(route) is None:
            raise ValueError(f"{route.path} does not declare what it needs: needs=...")


def api_routes(routes: Sequence[BaseRoute]) -> Iterator[APIRoute]:
    """Yield the routes of the API, without those of pages."""
    return (route for route in routes if isinstance(route, APIRoute))


async def authorise(request: Request) -> None:
    """Check that a request may be passed to its route; a refusal about a tenant is recorded in its audit log.

    Raises:
        Unauthenticated: the route needs an identity, and the request is not authenticated.
        NotFound: there is no such tenant, or none for this caller.
        Forbidden: the caller may not do this.
    """
    required = RequiredAccess.of(request.scope["route"])
    if required is None:
        raise Forbidden("The route does not say what it needs.")
    if required.needs is Access.PUBLIC:
        return
    caller = None
    try:
        caller = await authenticated(request)
        if _TENANT in request.path_params:
            request.scope[ACCESS] = _access(request, caller, required)
    except (Unauthenticated, Forbidden, NotFound) as error:
        _note(request, caller, error)
        raise


async def authenticated_or_none(request: Request) -> Caller | None:
    """Return the caller of a request that needs no identity, None if it is not authenticated."""
    try:
        return await authenticated(request)
    except ChargebackError:  # the token is unknown, or its storage is unavailable
        return None


def access_to(caller: Caller, tenant_name: str) -> TenantAccess | None:
    """Return what a caller may do with a tenant; None if the caller may not even read it: it is then not found."""
    access = caller.access(tenant_name)
    return access if access is not None and access.allows(Right.READ) else None


def require_whole_tenant(caller: Caller, services: Services) -> None:
    """Check that a caller may see data about the service as a whole.

    Raises:
        Forbidden: the caller sees no tenant as a whole.
    """
    found = [access_to(caller, name) for name in services.tenants]
    if caller.is_known and not any(access is not None and access.sees_everything for access in found):
        raise Forbidden("This is about the whole service: it needs the right `read`, without a scope, in some tenant.")


def accepts_only_csv(request: Request) -> bool:
    """Return whether a request accepts a CSV file and nothing else: then lists are exported."""
    accepted = request.headers.get("accept", "").split(",")
    return [part.partition(";")[0].strip() for part in accepted] == [CSV_TYPE]


def _access(request: Request, caller: Caller, required: RequiredAccess) -> TenantAccess:
    services: Services = request.app.state.services
    name = request.path_params[_TENANT]
    access = access_to(caller, name) if name in services.tenants else None
    if access is None:
        raise NotFound(f"There is no tenant {name!r}.")
    exports = required.needs is Right.READ and not required.whole and accepts_only_csv(request)
    needs = Right.EXPORT if exports else Right(required.needs)
    by = f" ({access.role})" if access.role else ""
    if not access.allows(needs):
        yours = ", ".join(right for right in Right if right in access.rights)
        raise Forbidden(f"This needs the right {needs} in tenant {name}; yours are: {yours}{by}.")
    if required.whole and access.scope is not None:
        parts = "; ".join(f"{key} {', '.join(values) or 'none'}" for key, values in access.scope.as_json().items())
        raise Forbidden(f"This is about the whole bill of tenant {name}, but you may see only a part: {parts}{by}.")
    return access


def _note(request: Request, caller: Caller | None, error: ApiError) -> None:
    refusals: RefusalLog = request.app.state.refusals
    refusals.deny(request.scope, error.status, ANONYMOUS if caller is None else caller.name, error.message)
