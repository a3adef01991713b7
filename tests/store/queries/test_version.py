"""A version identifies all data from which results are made."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chargeback.errors import QueryTimeout
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.queries.engine import CancellationToken
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.version import read_version
from tests.support.days import set_chargebacks
from tests.support.facts import Share, tenant_store, write_shares

DAY = date(2026, 1, 2)


def test_versions(tmp_path: Path) -> None:
    """Without a change the version is the same; a day that is written or calculated changes it."""
    with tenant_store(tmp_path) as store:
        tags = LookupCaches()
        first = read_version(store, CancellationToken(), tags)
        assert first.digest == read_version(store, CancellationToken(), tags).digest
        write_shares(store.facts, [Share(DAY, "sa-1", "1")])
        written = read_version(store, CancellationToken(), tags)
        with store.control.write() as connection:
            set_chargebacks(connection, DAY)
        calculated = read_version(store, CancellationToken(), tags)
        assert len({first.digest, written.digest, calculated.digest}) == 3
        assert calculated.control.last_calculated == DAY
        assert calculated.snapshots[CHARGEBACKS_TABLE].rows == 1
        token = CancellationToken()
        token.cancel()
        with pytest.raises(QueryTimeout):
            read_version(store, token, tags)
