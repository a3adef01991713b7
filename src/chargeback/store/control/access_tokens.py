"""Tokens of machines: names, rights and scopes, and what a token looks like.

A token is ``cb_<tenant>_<secret>``. The secret has 256 random bits, so that it cannot be guessed; the database has only
its SHA-256, which need not be slow. With read access to the database one cannot use a token.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

from sqlalchemy import Connection, RowMapping, exists, insert, or_, select, update

from chargeback.access.caller import Right, TenantAccess, rights_of
from chargeback.access.scope import RowScope
from chargeback.store.control.audit import TOKEN_CREATED, TOKEN_REVOKED, AuditEntry, record
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.schema import access_tokens

PREFIX: Final = "cb_"
MAX_NAME_LENGTH: Final = 64

#: How old the kept time of the last use may be. A database is not written to for each request.
USE_PRECISION: Final = timedelta(minutes=5)

_TOKEN: Final = re.compile(rf"{PREFIX}(?P<tenant>[A-Za-z0-9][A-Za-z0-9_.-]{{0,62}})_[0-9a-f]{{64}}")


@dataclass(frozen=True)
class TokenWrite:
    """A token to create. Without ``expires_at`` it holds until it is revoked."""

    name: str
    rights: frozenset[Right]
    scope: RowScope | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class AccessToken:
    """A token as it is stored; ``id`` is its number, ``name`` is unique among those that are not revoked."""

    id: int
    name: str
    rights: frozenset[Right]
    scope: RowScope | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """Return the token of a row."""
        values = {name: value for name, value in row.items() if name != "digest"}
        scope = None if row["scope"] is None else RowScope.of(row["scope"])
        return cls(**values | {"rights": frozenset(map(Right, row["rights"])), "scope": scope})

    def holds(self, now: datetime) -> bool:
        """Return whether the token is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def access(self) -> TenantAccess:
        """What it allows with its tenant."""
        return TenantAccess(rights_of(self.rights), self.scope, f"token {self.name}")


def new_token(tenant_name: str) -> str:
    """Return a new token of a tenant."""
    return f"{PREFIX}{tenant_name}_{secrets.token_hex(32)}"


def tenant_of(token: str) -> str | None:
    """Return the name of the tenant of a token; None if the text is no token.

    >>> tenant_of("cb_acme_eu_" + 64 * "0"), tenant_of("cb_acme")
    ('acme_eu', None)
    """
    found = _TOKEN.fullmatch(token)
    return found and found["tenant"]


def digest_of(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def create_token(
    connection: Connection, token: str, write: TokenWrite, *, who: str, now: datetime
) -> AccessToken | None:
    """Store a token and return it; return None if the name belongs to one that is not revoked."""
    lock_tenant(connection)
    in_use = (access_tokens.c.name == write.name) & access_tokens.c.revoked_at.is_(None)
    if connection.execute(select(exists().where(in_use))).scalar():
        return None
    content = {
        "rights": sorted(write.rights),
        "scope": None if write.scope is None else write.scope.as_json(),
    }
    row = {
        "name": write.name,
        "digest": digest_of(token),
        "created_at": now,
        "created_by": who,
        "expires_at": write.expires_at,
        **content,
    }
    created = connection.execute(insert(access_tokens).values(row).returning(access_tokens)).mappings().one()
    expires = None if write.expires_at is None else write.expires_at.isoformat()
    record(connection, who, [AuditEntry(TOKEN_CREATED, f"token/{write.name}", None, content | {"expires_at": expires})])
    return AccessToken.of(created)


def list_tokens(connection: Connection) -> list[AccessToken]:
    """Return every token that there was, the oldest first."""
    rows = connection.execute(select(access_tokens).order_by(access_tokens.c.id)).mappings()
    return [AccessToken.of(row) for row in rows]


def find_token(connection: Connection, token: str) -> AccessToken | None:
    """Return a token, which may have expired or been revoked; None if there never was such a token."""
    query = select(access_tokens).where(access_tokens.c.digest == digest_of(token))
    row = connection.execute(query).mappings().first()
    return None if row is None else AccessToken.of(row)


def revoke_token(connection: Connection, name: str, *, who: str, now: datetime) -> bool:
    """Revoke the token with a name; return whether there was one that was not revoked."""
    in_use = (access_tokens.c.name == name) & access_tokens.c.revoked_at.is_(None)
    found = connection.execute(update(access_tokens).where(in_use).values(revoked_at=now)).rowcount > 0
    if found:
        record(connection, who, [AuditEntry(TOKEN_REVOKED, f"token/{name}")])
    return found


def note_use(connection: Connection, token_id: int, now: datetime) -> None:
    """Keep when a token was used, unless that was kept a short time ago."""
    last = access_tokens.c.last_used_at
    is_old = or_(last.is_(None), last < now - USE_PRECISION)
    connection.execute(update(access_tokens).where(access_tokens.c.id == token_id, is_old).values(last_used_at=now))
