"""The commands of a recording, called within this process: those that only read, and those that write files."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.recorded.content import CHANGE, MONTH
from tests.recorded.questions import AS_OF, Known

#: The folder of the files that commands read, and the folder in which they write.
READ: Final = "files"
WRITTEN: Final = "written"
_KEYS: Final = "keys.csv"


def write_files(folder: Path, known: Known) -> None:
    """Write the files that commands read, and the keys of rows that they explain."""
    files = folder / READ
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    lines = [each for each in known.lines if each["timestamp"].startswith("2026-03-30")]
    with (files / "costs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["day", "where", "what", "how much"])
        writer.writerows(
            ("2026-03-30", each["resource_id"], each["product_type"], each["total_cost"]) for each in lines
        )
    (files / "other.csv").write_text(f"day,where,what,how much\n{CHANGE},lkc-1,KAFKA_BASE,1.5\n", encoding="utf-8")
    (files / "mapping.yaml").write_text(
        "columns: {amount: how much, entity: where, product_type: what, date: day}\n", encoding="utf-8"
    )
    (files / "categories.yaml").write_text(
        "cost_categories:\n  chain:\n    rules:\n      - {id: all, match: {identity: UNALLOCATED}, assign: a}\n",
        encoding="utf-8",
    )
    (files / "wrong.yaml").write_text("cost_categories: {chain: {rules: [{match: 1}]}}\n", encoding="utf-8")
    with (files / _KEYS).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(_keys(known))


def _keys(known: Known) -> Iterator[Sequence[str]]:
    """Yield the arguments that identify a row, for one row of each allocation detail."""
    rows = {row["allocation_detail"]: row for row in known.rows}
    for row in rows.values():
        metadata = row["metadata"]
        words = [row["timestamp"][:10], metadata["line_id"], row["identity_id"], "--portion", str(metadata["portion"])]
        yield words
    topics = {row["attribution_method"]: row for row in known.topic_rows}
    for row in topics.values():
        yield [row["timestamp"][:10], row["metadata"]["line_id"], "--topic", row["topic_name"]]


def commands(folder: Path) -> Iterator[list[str]]:
    """Yield the arguments of each command; paths are relative to ``folder``."""
    yield from (["version"], ["--help"], ["nothing"])
    for name in ("explain", "export", "reconcile", "statements", "journal", "verify", "categories", "check"):
        yield [name, "--help"]
    with (folder / READ / _KEYS).open(newline="", encoding="utf-8") as file:
        keys = list(csv.reader(file))
    for key in keys:
        yield ["explain", "small", *key]
    yield ["explain", "small", *keys[0][:3], "--as-of", AS_OF[0], "--contenders", "2"]
    yield ["explain", "small", *keys[0][:2], "nobody"]
    yield ["explain", "empty", *keys[0][:3]]
    for tenant in ("small", "odd", "empty"):
        yield ["verify", "--tenant", tenant]
        yield ["db", "current", "--tenant", tenant]
        yield ["token", "list", "--tenant", tenant, "--all"]
        yield ["categories", "export", "-", "--tenant", tenant]
    yield from (["db", "check"], ["check"], ["token", "list", "--tenant", "none"])
    for name in ("costs.csv", "other.csv"):
        yield ["reconcile", "small", f"{READ}/{name}", "--mapping", f"{READ}/mapping.yaml"]
    yield ["reconcile", "small", f"{READ}/costs.csv", "-m", f"{READ}/mapping.yaml", "--as-of", AS_OF[0]]
    yield ["reconcile", "small", f"{READ}/mapping.yaml", "-m", f"{READ}/mapping.yaml"]
    for name in ("categories.yaml", "wrong.yaml"):
        yield ["categories", "diff", f"{READ}/{name}", "--tenant", "small"]
        yield ["categories", "apply", f"{READ}/{name}", "--tenant", "small", "--dry-run"]
    for user, groups in (("admin@acme.example", ""), ("eve@acme.example", "team-payments"), ("x", "y")):
        yield ["access", "explain", "--config", "guarded.yaml", "--user", user, "--groups", groups]
    yield from _exports()


def _exports() -> Iterator[list[str]]:
    days = ["--from", "2026-03-29", "--through", "2026-03-31"]
    for form in ("csv", "parquet", "jsonl"):
        for rows in ("chargebacks", "topics"):
            yield [
                "export",
                "--to",
                f"{WRITTEN}/{rows}.{form}",
                "--tenant",
                "small",
                "--format",
                form,
                "--rows",
                rows,
                *days,
            ]
    yield [
        "export",
        "--to",
        f"{WRITTEN}/odd.csv",
        "--tenant",
        "odd",
        *days,
        "--columns",
        "timestamp,identity_id,amount,tags",
    ]
    yield ["export", "--to", f"{WRITTEN}/before.csv", "--tenant", "small", *days, "--as-of", AS_OF[0]]
    yield ["export", "--to", f"{WRITTEN}/x.csv", "--tenant", "small", "--month", MONTH, "--columns", "nothing"]
    for version, split in (("1.2", "identities"), ("1.4", "topics"), ("1.2", "none")):
        focus = ["--format", "focus", "--version", version, "--split", split]
        yield ["export", "--to", f"{WRITTEN}/focus-{split}", "--tenant", "small", *focus, *days]
    for way in (["--by", "tag:team"], ["--category", "business_unit"]):
        words = ["statements", "--tenant", "small", "--period", MONTH, *way]
        yield [*words, "--to", f"{WRITTEN}/statements-{way[1][:3]}", "--format", "html,csv,json"]
    yield [
        "statements",
        "--tenant",
        "odd",
        "--period",
        "2026-04",
        "--by",
        "identity_id",
        "--to",
        f"{WRITTEN}/odd",
        "--format",
        "json",
    ]
    for way in (["--by", "tag:team"], ["--template", "sap"], ["--format", "json"], ["--template", "wrong"]):
        yield ["journal", "--tenant", "small", "--period", MONTH, "--to", f"{WRITTEN}/journal-{way[1][:3]}", *way]
