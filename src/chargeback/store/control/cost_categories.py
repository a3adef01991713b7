"""Cost categories: a document per key, with every version that it has had. Nothing is ever overwritten.

Every write raises the tenant's ``categories_revision``: readers see that their caches are outdated. Before that, on
PostgreSQL, a lock of the tenant's row serialises writers, so that two editors cannot both replace the same version.
Every change is recorded in the audit log, as made by ``who``; the log has the numbers of the versions, and the versions
the documents.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, and_, func, insert, select, update

from chargeback.model.days import Clock, utc_now
from chargeback.model.edits import edit_text, present_version, replaced_version
from chargeback.store.control.audit import (
    API,
    CATEGORY_CHANGED,
    CATEGORY_CREATED,
    CATEGORY_REMOVED,
    AuditEntry,
    record,
)
from chargeback.store.control.catalogue import instant_of_change, lock_tenant
from chargeback.store.control.inventory_lists import bytewise
from chargeback.store.control.schema import cost_categories, tenant


@dataclass(frozen=True, slots=True)
class CategoryVersion:
    """One version of a cost category: its document as JSON, or None where the category was removed; with its author,
    time and reason."""

    key: str
    version: int
    document: str | None
    who: str
    at: datetime
    reason: str | None

    @property
    def is_removal(self) -> bool:
        """Whether this version removed the category."""
        return self.document is None

    @property
    def etag(self) -> str:
        """The strong ETag of the version: its number and a digest of all that it has."""
        made_of = [self.key, self.version, self.document, self.who, self.at.isoformat(), self.reason]
        digest = hashlib.blake2b(json.dumps(made_of).encode(), digest_size=8)
        return f'"{self.version}-{digest.hexdigest()}"'

    @property
    def last_edit(self) -> str:
        """Who wrote the version, when and why, as a sentence without its full stop."""
        why = f", reason: {self.reason}" if self.reason else ""
        return f"{edit_text(self, self.who, self.key, self.at)} (version {self.version}{why})"


@dataclass(frozen=True, slots=True)
class CategoryWrite:
    """A version to write: the document as JSON, or None to remove the category, and why."""

    key: str
    document: str | None
    reason: str | None = None


def categories_revision(connection: Connection) -> int:
    """Return how often the tenant's cost categories were written; 0 if the tenant has no row yet."""
    return connection.execute(select(tenant.c.categories_revision)).scalar() or 0


def list_categories(connection: Connection, as_of: datetime | None = None) -> list[CategoryVersion]:
    """Return the categories that there are, by key: the present version of each, or the one that was in force
    ``as_of`` an earlier instant."""
    newest = select(cost_categories.c.key, func.max(cost_categories.c.version).label("version"))
    if as_of is not None:
        newest = newest.where(cost_categories.c.at <= as_of)
    last = newest.group_by(cost_categories.c.key).subquery()
    same = and_(cost_categories.c.key == last.c.key, cost_categories.c.version == last.c.version)
    query = select(cost_categories).join(last, same).where(cost_categories.c.document.is_not(None))
    rows = connection.execute(query.order_by(bytewise(connection, cost_categories.c.key))).mappings()
    return [_version(row) for row in rows]


def changed_between(connection: Connection, since: datetime, until: datetime | None) -> bool:
    """Return whether a category was changed after ``since``, up to ``until``; None means now."""
    later = [cost_categories.c.at > since, *([] if until is None else [cost_categories.c.at <= until])]
    return connection.execute(select(cost_categories.c.key).where(*later).limit(1)).first() is not None


def read_category(connection: Connection, key: str) -> CategoryVersion | None:
    """Return the present version of a category; None if there is none, or no more."""
    return present_version(last_version(connection, key))


def last_version(connection: Connection, key: str) -> CategoryVersion | None:
    """Return the newest version of a category, which may be its removal; None if there never was one."""
    return _first(connection, _of(key).order_by(cost_categories.c.version.desc()).limit(1))


def read_version(connection: Connection, key: str, version: int) -> CategoryVersion | None:
    """Return one version of a category, which may be its removal; None if there is no such version."""
    return _first(connection, _of(key).where(cost_categories.c.version == version))


def read_changes(connection: Connection, key: str, until: int) -> list[tuple[datetime, bool]]:
    """Return when each version of a category up to the number ``until`` was written, and whether it has a document, in
    order."""
    columns = (cost_categories.c.at, cost_categories.c.document.is_not(None))
    query = select(*columns).where(cost_categories.c.key == key, cost_categories.c.version <= until)
    return [(at, bool(is_there)) for at, is_there in connection.execute(query.order_by(cost_categories.c.version))]


def category_history(connection: Connection, key: str, *, offset: int, limit: int) -> tuple[list[CategoryVersion], int]:
    """Return one page of the versions of a category, the newest first, as (versions, number of versions in all)."""
    count = select(func.count()).select_from(cost_categories).where(cost_categories.c.key == key)
    total = connection.execute(count).scalar_one()
    if offset >= total:
        return [], total
    page = _of(key).order_by(cost_categories.c.version.desc()).offset(offset).limit(limit)
    return [_version(row) for row in connection.execute(page).mappings()], total


def write_category(
    connection: Connection, write: CategoryWrite, *, expected: int | None, who: str = API, clock: Clock = utc_now
) -> CategoryVersion:
    """Write the next version of a category and return it. ``expected`` is the number of the version that it replaces;
    None for a category that is not there.

    Raises:
        EditConflict: another version is there, or none.
    """
    lock_tenant(connection)
    last = last_version(connection, write.key)
    before = replaced_version(f"cost category {write.key}", last, expected)
    # In the order of all that has a past, also if the clock goes back: an instant keeps the categories that it had.
    at = instant_of_change(connection, clock())
    at = at if last is None else max(at, last.at)
    version = CategoryVersion(write.key, 1 if last is None else last.version + 1, write.document, who, at, write.reason)
    connection.execute(update(tenant).values(categories_revision=tenant.c.categories_revision + 1))
    connection.execute(insert(cost_categories).values(_row(version)))
    _record(connection, before, version, clock)
    return version


def _of(key: str) -> Select[Any]:
    return select(cost_categories).where(cost_categories.c.key == key)


def _first(connection: Connection, query: Select[Any]) -> CategoryVersion | None:
    row = connection.execute(query).mappings().first()
    return None if row is None else _version(row)


def _version(row: RowMapping) -> CategoryVersion:
    return CategoryVersion(row["key"], row["version"], row["document"], row["who"], row["at"], row["reason"])


def _row(version: CategoryVersion) -> dict[str, Any]:
    return {
        "key": version.key,
        "version": version.version,
        "document": version.document,
        "who": version.who,
        "at": version.at,
        "reason": version.reason,
    }


def _record(connection: Connection, before: CategoryVersion | None, after: CategoryVersion, clock: Clock) -> None:
    what = CATEGORY_CREATED if before is None else CATEGORY_REMOVED if after.is_removal else CATEGORY_CHANGED
    entry = AuditEntry(what, f"category/{after.key}", _logged(before), _logged(after))
    record(connection, after.who, [entry], clock)


def _logged(version: CategoryVersion | None) -> dict[str, Any] | None:
    if version is None or version.is_removal:
        return None
    return {"version": version.version, "reason": version.reason}
