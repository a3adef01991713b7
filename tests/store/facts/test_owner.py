"""A folder of facts belongs to one tenant."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chargeback.errors import ForeignStorage
from chargeback.store.facts.owner import OWNER, check_owner, claim
from chargeback.store.facts.tables import BILLING_TABLE
from chargeback.store.ownership import StorageOwner
from tests.support.facts import ECOSYSTEM, TENANT_ID, line, new_facts, write_lines

OURS = StorageOwner(TENANT_ID, ECOSYSTEM)
THEIRS = StorageOwner("org-2", ECOSYSTEM)
DAY = date(2026, 1, 1)


def test_a_folder_belongs_to_the_first_who_claims_it(tmp_path: Path) -> None:
    """A folder without an owner is claimed once; another tenant is then refused, with both in the message."""
    facts = new_facts(tmp_path / "facts")
    check_owner(facts.place, THEIRS)
    for _ in range(2):
        claim(facts.place, OURS)
    for attempt in (check_owner, claim):
        with pytest.raises(ForeignStorage) as raised:
            attempt(facts.place, THEIRS)
        for part in (str(tmp_path), str(OURS), str(THEIRS), "another storage"):
            assert part in str(raised.value)
    check_owner(facts.place, OURS)


@pytest.mark.parametrize("written", ["", "{", "[]", None])
def test_a_folder_without_a_readable_record_belongs_to_whose_bills_it_has(tmp_path: Path, written: str | None) -> None:
    """Facts from before owners were recorded, or with a truncated record, belong to the tenant of their bills."""
    facts = new_facts(tmp_path / "facts")
    write_lines(facts, [line(DAY, "1.00")])
    if written is not None:
        (tmp_path / "facts" / OWNER).write_text(written)
    with pytest.raises(ForeignStorage, match=f"belongs to tenant_id {TENANT_ID}"):
        claim(facts.place, THEIRS)
    claim(facts.place, OURS)
    Path(facts.snapshot(BILLING_TABLE).files[0].path).unlink()
    with pytest.raises(ForeignStorage):
        check_owner(facts.place, THEIRS)


def test_damaged_bills_say_nothing(tmp_path: Path) -> None:
    """An unreadable bill does not prevent the run that repairs it."""
    facts = new_facts(tmp_path / "facts")
    write_lines(facts, [line(DAY, "1.00")])
    Path(facts.snapshot(BILLING_TABLE).files[0].path).write_bytes(b"no Parquet")
    check_owner(facts.place, THEIRS)
