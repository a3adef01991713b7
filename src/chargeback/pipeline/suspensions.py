"""Suspended tenants: gathering failed too many times in a row, and an operator must act before the tenant runs again.

A suspension is stored only in the control database of the tenant, where the engine, readiness, metrics and the status
of the pipeline read it. A database that does not respond does not suspend a tenant; it is tried again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from chargeback.store.control import runs
from chargeback.store.tenant import TenantStore

log = logging.getLogger(__name__)


class Suspensions:
    """The suspensions of these tenants. Safe for use by several threads.

    Raises (everywhere): StorageError when the control database of the tenant cannot be used.
    """

    def __init__(self, stores: Mapping[str, TenantStore]) -> None:
        self._stores = stores
        self._lock = threading.Lock()
        self._cleared: set[str] = set()
        self._logged: set[str] = set()

    def clear_at_start(self, name: str) -> None:
        """Make the tenant active again at the start of a worker, once per process."""
        with self._lock:
            if name in self._cleared:
                return
        with self._stores[name].control.write() as connection:
            runs.clear_suspension(connection)
        with self._lock:
            self._cleared.add(name)

    def reason(self, name: str) -> str | None:
        """Return why the tenant is suspended, or None."""
        with self._stores[name].control.read() as connection:
            return runs.suspended_because(connection)

    def log_suspension(self, name: str) -> None:
        """Log the alert of a tenant that was suspended since the last call, and of an engine that has none left."""
        reason = self.reason(name)
        with self._lock:
            if reason is None:
                self._logged.discard(name)
                return
            if name in self._logged:
                return
            self._logged.add(name)
            log.critical("ALERT: Tenant %s has been permanently suspended", name)
            log.error("tenant %s: %s", name, reason)
            if self._logged == self._stores.keys():
                log.critical("ALERT: All %d tenant(s) have been permanently suspended", len(self._stores))
