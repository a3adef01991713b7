"""``chargeback demo``."""

from __future__ import annotations

import json
import re
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path

import httpx

from tests.cli.conftest import COMMAND, Run, environment
from tests.support.processes import free_port


def get(url: str) -> httpx.Response:
    """Return the response, retrying until the server is up."""
    with httpx.Client(transport=httpx.HTTPTransport(retries=8), timeout=30) as client:
        return client.get(url)


def first_question(port: int) -> dict[str, Decimal]:
    """Return each team's cost, using the request of the README."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (path,) = re.findall(r"^\$ curl 'http://127\.0\.0\.1:8080(/[^']+)'$", readme, re.MULTILINE)
    shown = json.loads(re.search(r"```json\n(.*?)```", readme, re.DOTALL)[1])  # type: ignore[index]
    answer = get(f"http://127.0.0.1:{port}{path}").json()
    assert answer.keys() == shown.keys()
    assert answer["buckets"][0].keys() == shown["buckets"][0].keys()
    sums: dict[str, Decimal] = {}
    for bucket in answer["buckets"]:
        team = bucket["dimensions"]["tag:team"]
        sums[team] = sums.get(team, Decimal(0)) + Decimal(bucket["total_amount"])
    assert sum(sums.values()) == Decimal(answer["total_amount"])
    return sums


@contextmanager
def served(words: Sequence[str], folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Serve the demo inside the ``with`` block; yield its port and the lines of standard output so far. Standard error
    goes to the file ``stderr``."""
    port, said = free_port(), list[str]()
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [*COMMAND, *words, "--port", str(port)],
            cwd=folder,
            env=environment(PYTHONUNBUFFERED="1"),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if f"http://127.0.0.1:{port}/docs" in line:
                break
        yield port, said
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0


def test_the_demo_sums_up_is_kept_and_served(chargeback_process: Run, tmp_path: Path) -> None:
    """The demo allocates a generated bill exactly. The next run calculates only the day whose metrics came late, and a
    tag that was removed stays removed. The API responds on the printed port until SIGINT ends the process with exit
    code 0."""
    words = ("demo", "--size", "small", "--days", "13")
    first = chargeback_process(*words, "--no-serve")
    assert first.returncode == 0, first.stderr
    totals = dict(re.findall(r"^ (billed|charged|of it with an owner) +([\d.]+)", first.stdout, re.MULTILINE))
    assert totals["billed"] == totals["charged"]
    assert Decimal(0) < Decimal(totals["of it with an owner"]) < Decimal(totals["billed"])
    assert "allocating 8 of 13 days; the last 5 are not complete yet" in first.stderr
    assert "product type" in first.stdout
    assert re.search(r"^ sa-\w+ +[a-z]+-[a-z]+-\d{3} +[\d.]+", first.stdout, re.MULTILINE)
    assert "WARNING" not in first.stderr
    assert "Generating an organisation (small, 13 days, seed 7)" in first.stderr
    folder = tmp_path / "demo-data" / "small-13-days-seed-7"
    assert (folder / "chargeback.yaml").is_file()
    (late,) = re.findall(r"^On purpose, the metrics of (\S+) come two minutes late", first.stderr, re.MULTILINE)
    with closing(sqlite3.connect(folder / "acme.db", isolation_level=None)) as database:
        pending = "SELECT tracking_date FROM dataset_days WHERE dataset = 'chargebacks' AND state <> 'current'"
        assert database.execute(pending).fetchall() == [(late,)]
        removed = without_its_tag(database)
        with served(words, tmp_path) as (port, said):
            assert next(line for line in said if line.startswith(" acme")).split()[3:5] == ["1", "1"]
            answer = get(f"http://127.0.0.1:{port}/api/v1/tenants/acme/chargebacks?page_size=1").json()
            teams = first_question(port)
        assert "two minutes late" not in (tmp_path / "stderr").read_text()
        assert answer["total"] > 0
        assert {"payments", "UNTAGGED"} < teams.keys()
        assert Decimal(answer["items"][0]["amount"]) <= sum(teams.values())
        assert database.execute(pending).fetchall() == []
        assert removed not in {row[0] for row in database.execute("SELECT entity_id FROM tags")}


def test_the_demo_with_files_in_focus(chargeback_process: Run, tmp_path: Path) -> None:
    """The files of a generated MSK cluster are allocated exactly, by the metrics of its principals."""
    done = chargeback_process("demo", "--bill", "focus", "--size", "small", "--days", "8", "--no-serve")
    assert done.returncode == 0, done.stderr
    totals = dict(re.findall(r"^ (billed|charged|of it with an owner) +([\d.]+)", done.stdout, re.MULTILINE))
    assert totals["billed"] == totals["charged"]
    assert Decimal(totals["of it with an owner"]) > 0
    assert {"BROKERS", "STORAGE", "Support", "Tax"} <= set(done.stdout.split())
    assert list((tmp_path / "demo-data" / "focus-small-8-days-seed-7" / "bill" / "metadata").rglob("*-Manifest.json"))


def without_its_tag(database: sqlite3.Connection) -> str:
    """Check that most identities have a team tag and some do not; remove the tag of one and return its id."""
    teams = dict(database.execute("SELECT entity_id, tag_value FROM tags WHERE tag_key = 'team'"))
    payers = "SELECT identity_id FROM identities WHERE identity_type IN ('user', 'service_account')"
    everybody = {identity for (identity,) in database.execute(payers)}
    assert everybody & teams.keys()
    assert everybody - teams.keys()
    removed = min(teams)
    database.execute("DELETE FROM tags WHERE entity_id = ?", (removed,))
    return str(removed)


def test_a_port_that_is_taken(chargeback_process: Run) -> None:
    """A port in use is reported before any work is done."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = chargeback_process("demo", "--port", str(taken.getsockname()[1]), "--size", "small", "--days", "8")
    assert said.returncode == 1
    assert "the port is in use; choose another one" in said.stderr
    assert said.stdout == ""
