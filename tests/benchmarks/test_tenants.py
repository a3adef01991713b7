"""Generated tenants are real ones: calculated, complete, and reproducible."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from benchmarks.evidence import EvidenceMaker
from benchmarks.floors import Floors
from benchmarks.reference.loop import allocate, new_database
from benchmarks.reference.star import Star
from benchmarks.shapes import CLUSTER_TYPES, FIRST_DAY, Shape
from benchmarks.tenants import Generated, generate, generated

from chargeback.store.facts.tables import BILLING_TABLE, read_day

_TINY = Shape("tiny", identities=20, clusters=3, members=4, days=2, resources=5, topics=4)


def _tiny(folder: Path) -> Generated:
    generate(_TINY, folder)
    return Generated(_TINY, folder / "facts", folder / "control.db", 0, 0)


def test_every_line_is_allocated(tmp_path: Path) -> None:
    """The rows of a generated day sum to its bill, and floor and reference read the same rows."""
    tenant = _tiny(tmp_path / "tenant")
    rows = [pq.ParquetFile(name).read() for name in tenant.files()]
    charged = [pc.sum(each["amount"]).as_py() for each in rows]
    facts = tenant.tables()
    billed = [pc.sum(read_day(facts, BILLING_TABLE, day)["total_cost"]).as_py() for day in _TINY.dates()]
    assert charged == billed
    floors = Floors(tenant.facts)
    sums = floors.aggregate("identity_id", "day", "UTC", FIRST_DAY, _TINY.last_day)
    assert sum(row[2] for row in sums) == sum(billed)
    of_clusters = [
        line["total_cost"]
        for day in _TINY.dates()
        for line in read_day(facts, BILLING_TABLE, day).to_pylist()
        if line["resource_id"].startswith("lkc-") and line["product_type"] in CLUSTER_TYPES
    ]
    assert sum(row[2] for row in floors.topics(FIRST_DAY, _TINY.last_day)) == sum(of_clusters)
    floors.close()
    star = Star(tmp_path / "star.db", tenant.files())
    assert sum(row[3] for row in star.aggregate("identity_id", "day", FIRST_DAY, _TINY.last_day)) == sum(map(len, rows))
    star.close()


def test_a_tenant_is_generated_once(tmp_path: Path) -> None:
    """A second call returns the existing tenant."""
    generate(_TINY, tmp_path / _TINY.folder)
    made = (tmp_path / _TINY.folder / "generated.json").stat().st_mtime_ns
    tenant = generated(_TINY, tmp_path)
    assert (tmp_path / _TINY.folder / "generated.json").stat().st_mtime_ns == made
    assert (tenant.shape, len(tenant.files())) == (_TINY, 2)
    assert tenant.rows == sum(pq.ParquetFile(name).metadata.num_rows for name in tenant.files())


def test_the_same_days_everywhere() -> None:
    """Evidence depends on shape and day only."""
    first, second = EvidenceMaker(_TINY), EvidenceMaker(_TINY)
    for maker in (first, second):
        maker.day(FIRST_DAY)
    one, other = first.day(FIRST_DAY), second.day(FIRST_DAY)
    assert (one.billing, one.usage, one.members) == (other.billing, other.usage, other.members)
    first.close()
    second.close()


def test_the_reference_allocates_whole_lines(tmp_path: Path) -> None:
    """The reference implementation allocates every line completely, too."""
    maker = EvidenceMaker(_TINY)
    evidence = maker.day(FIRST_DAY)
    maker.close()
    database = new_database(str(tmp_path / "reference.db"))
    rows = allocate(evidence, database)
    assert rows == database.execute("SELECT count(*) FROM fact").fetchone()[0] > 100
    database.close()
