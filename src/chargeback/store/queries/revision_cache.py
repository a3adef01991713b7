"""What is made of a tenant's data is made once for each revision of it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class RevisionCache(Generic[T]):
    """The latest value of each tenant; with ``most``, of the most recently used tenants. Safe for use by several
    threads."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[str, tuple[object, T]] = OrderedDict()

    def get(self, tenant_name: str, revision: object, make: Callable[[], T]) -> T:
        """Return the tenant's value of a revision, which ``make`` makes unless it is known."""
        with self._lock:
            known = self._values.get(tenant_name)
            if known is not None and known[0] == revision:
                self._values.move_to_end(tenant_name)
                return known[1]
        value = make()
        with self._lock:
            self._values[tenant_name] = (revision, value)
            self._values.move_to_end(tenant_name)
            if self._most is not None and len(self._values) > self._most:
                self._values.popitem(last=False)
        return value
