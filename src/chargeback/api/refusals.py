"""Records in a tenant's audit log that a request was refused: by the guard, or because of its caller.

Anyone can send any number of such requests. So the same refusal is recorded once a day, and at most :data:`MOST_A_DAY`
refusals for each tenant and caller; all callers without a name count as one. Records are written in the background.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Final

from starlette.types import Scope

from chargeback.api.executor import RequestExecutor
from chargeback.api.services import Services
from chargeback.store.control.audit import API, REQUEST_REFUSED, AuditEntry, record

#: How many refusals of one tenant and one caller a process records in a UTC day.
MOST_A_DAY: Final = 50

_TENANT: Final = re.compile(r"/api/v1/tenants/([^/]+)(?:/|$)")
_MAX_LENGTH: Final = 200


class RefusalLog:
    """The refusals that were recorded today. Used by the event loop only."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._day: date | None = None
        self._recorded: dict[tuple[str, str], set[tuple[int, str]]] = {}

    def note(self, scope: Scope, status: int, sender: str) -> None:
        """Record that a request about a tenant was refused with ``status``; ``sender`` is the host or the origin that
        was the reason."""
        reason = "host" if status == 421 else "origin"
        self._record(scope, API, (status, sender[:_MAX_LENGTH]), {"status": status, reason: _plain(sender)})

    def deny(self, scope: Scope, status: int, who: str, reason: str) -> None:
        """Record that a request about a tenant was refused because of its caller, ``who``."""
        asked = f"{scope['method']} {scope['path']}"
        self._record(scope, who, (status, asked[:_MAX_LENGTH]), {"status": status, "reason": _plain(reason)})

    def _record(self, scope: Scope, who: str, kind: tuple[int, str], details: dict[str, Any]) -> None:
        found = _TENANT.match(scope["path"])
        tenant = None if found is None else self._services.tenants.get(found[1])
        if tenant is None or not self._is_new((tenant.tenant_name, who), kind):
            return
        entry = AuditEntry(REQUEST_REFUSED, f"{scope['method']} {_plain(scope['path'])}", None, details)
        executor: RequestExecutor = scope["app"].state.executor
        executor.write_later(
            tenant,
            lambda connection: record(connection, who, [entry]),
            failed="a refused request could not be recorded",
        )

    def _is_new(self, place: tuple[str, str], kind: tuple[int, str]) -> bool:
        today = self._services.clock().date()
        if today != self._day:
            self._day, self._recorded = today, {}
        recorded = self._recorded.setdefault(place, set())
        if kind in recorded or len(recorded) >= MOST_A_DAY:
            return False
        recorded.add(kind)
        return True


def _plain(text: str) -> str:
    """Return a text with only characters that a database and a log can store."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_MAX_LENGTH])
