"""Access tokens of machines, on both databases."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import text

from chargeback.access.caller import Right, TenantAccess
from chargeback.access.scope import RowScope
from chargeback.store.control import access_tokens as store
from chargeback.store.control.access_tokens import AccessToken, TokenWrite
from chargeback.store.control.audit import AuditFilter, audit_entries
from chargeback.store.control.database import ControlDatabase
from tests.support.clock import NOW

SCOPE = RowScope.of({"category:cost_center": ["b", "a"], "tag:team": ["ü"]})
READ = TokenWrite("ci", frozenset({Right.EXPORT}), SCOPE, NOW + timedelta(days=90))


def create(database: ControlDatabase, write: TokenWrite = READ, tenant: str = "acme") -> str:
    """Store a new token and return it."""
    token = store.new_token(tenant)
    with database.write() as connection:
        assert store.create_token(connection, token, write, who="ann", now=NOW)
    return token


def find(database: ControlDatabase, token: str) -> AccessToken | None:
    """Return the stored data of a token."""
    with database.read() as connection:
        return store.find_token(connection, token)


def test_the_life_of_a_token(database: ControlDatabase) -> None:
    """A token is created, found, used and revoked, and stays in the list."""
    token = create(database)
    found = find(database, token)
    assert found == AccessToken(1, "ci", frozenset({Right.EXPORT}), SCOPE, NOW, "ann", READ.expires_at, None, None)
    assert found.access == TenantAccess(frozenset({Right.EXPORT, Right.READ}), SCOPE, "token ci")
    assert find(database, token[:-1] + ("1" if token[-1] == "0" else "0")) is None
    with database.write() as connection:
        assert store.revoke_token(connection, "ci", who="bob", now=NOW)
        assert not store.revoke_token(connection, "ci", who="bob", now=NOW)
        assert not store.revoke_token(connection, "other", who="bob", now=NOW)
        (listed,) = store.list_tokens(connection)
        assert listed.revoked_at == NOW
        assert not listed.holds(NOW)
        entries, _ = audit_entries(connection, AuditFilter(), offset=0, limit=10)
    assert [(entry["who"], entry["what"], entry["target"]) for entry in entries] == [
        ("bob", "token.revoked", "token/ci"),
        ("ann", "token.created", "token/ci"),
    ]
    assert entries[1]["after"] == {
        "rights": ["export"],
        "scope": SCOPE.as_json(),
        "expires_at": "2026-05-01T12:00:00+00:00",
    }


def test_the_secret_is_not_stored(database: ControlDatabase) -> None:
    """Neither the database nor the audit log has the secret of a token."""
    token = create(database)
    secret = token.rpartition("_")[2]
    with database.read() as connection:
        for table in ("access_tokens", "audit"):
            rows = connection.execute(text(f"SELECT * FROM {table}")).all()
            assert rows
            assert secret not in str(rows)


def test_no_two_tokens_are_the_same() -> None:
    """Tokens have 256 random bits and the name of their tenant, with any characters."""
    tokens = {store.new_token("acme_eu-1.x") for _ in range(1000)}
    assert len({token.rpartition("_")[2] for token in tokens}) == 1000
    for token in tokens:
        assert re.fullmatch(r"cb_acme_eu-1\.x_[0-9a-f]{64}", token)
        assert store.tenant_of(token) == "acme_eu-1.x"


@pytest.mark.parametrize(
    "text", ["", "cb_", "cb_acme", f"cb_acme_{'0' * 63}", f"cb_{'0' * 64}", f"cb_acme_{'0' * 64}\n"]
)
def test_what_is_no_token(text: str) -> None:
    """Other texts have no tenant."""
    assert store.tenant_of(text) is None


def test_a_name_is_free_when_its_token_was_revoked(database: ControlDatabase) -> None:
    """Two valid tokens never have the same name; a name is free after its token is revoked."""
    old = create(database)
    with database.write() as connection:
        assert store.create_token(connection, store.new_token("acme"), READ, who="ann", now=NOW) is None
        store.revoke_token(connection, "ci", who="ann", now=NOW)
    new = create(database)
    states = [token is not None and token.holds(NOW) for token in (find(database, old), find(database, new))]
    assert states == [False, True]


def test_an_expired_token_does_not_hold(database: ControlDatabase) -> None:
    """A token is valid until just before it expires; one without expiry is always valid."""
    found = find(database, create(database))
    assert found is not None
    assert found.holds(NOW + timedelta(days=90, microseconds=-1))
    assert not found.holds(NOW + timedelta(days=90))
    everlasting = find(database, create(database, TokenWrite("other", frozenset({Right.READ}))))
    assert everlasting is not None
    assert everlasting.holds(NOW + timedelta(days=40_000))
    assert everlasting.scope is None


def test_the_last_use_is_kept_every_five_minutes(database: ControlDatabase) -> None:
    """The last use is stored every five minutes, so that not every request writes to the database."""
    token = create(database)
    kept = []
    for minutes in (0, 4, 5, 6, 11, 3):
        with database.write() as connection:
            store.note_use(connection, 1, NOW + timedelta(minutes=minutes))
        found = find(database, token)
        assert found is not None
        assert found.last_used_at is not None
        kept.append((found.last_used_at - NOW) / timedelta(minutes=1))
    assert kept == [0, 0, 0, 6, 6, 6]


def test_writers_take_turns(database: ControlDatabase) -> None:
    """Of many that create a token of the same name at the same time, one succeeds; for the others the name is taken."""

    def _create(_: int) -> bool:
        with database.write() as connection:
            return store.create_token(connection, store.new_token("acme"), READ, who="ann", now=NOW) is not None

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(_create, range(6))) == 1
