"""What is made of a tenant's data is made once for each revision of it, or for each of the files that it is made of."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import pyarrow as pa

from chargeback.store.queries.engine import available_memory

T = TypeVar("T")

# Of the memory that the process may use, kept tables have this part, and one of them at most so much of that.
_PART_OF_MEMORY: Final = 64
_PART_OF_ALL: Final = 16


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


class KeptTables:
    """The most recently used tables, by the immutable data that they are made of. A large one is not kept. Safe for use
    by several threads."""

    def __init__(self, most_bytes: int | None = None) -> None:
        """Limit what is kept to a number of bytes; without a limit, the memory of the machine decides."""
        self._most_bytes = most_bytes if most_bytes is not None else available_memory() // _PART_OF_MEMORY
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, made_of: Hashable, make: Callable[[], pa.Table]) -> pa.Table:
        """Return the table of something, which ``make`` makes unless it is kept."""
        table = self.find(made_of)
        if table is None:
            table = make()
            self.keep(made_of, table)
        return table

    def find(self, made_of: Hashable) -> pa.Table | None:
        """Return the table of something; None if it is not kept."""
        with self._lock:
            if made_of in self._kept:
                self._kept.move_to_end(made_of)
            return self._kept.get(made_of)

    def keep(self, made_of: Hashable, table: pa.Table) -> None:
        """Keep the table of something."""
        with self._lock:
            if made_of not in self._kept and table.nbytes <= self._most_bytes // _PART_OF_ALL:
                self._kept[made_of] = table
                self._bytes += table.nbytes
                while self._bytes > self._most_bytes:
                    self._bytes -= self._kept.popitem(last=False)[1].nbytes
