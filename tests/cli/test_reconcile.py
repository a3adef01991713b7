"""``chargeback reconcile``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from chargeback.model.days import ONE_DAY
from chargeback.store.facts.tables import BILLING_TABLE, read_day
from tests.cli.conftest import TODAY, Demo, Run
from tests.support.facts import known_facts

DAY = TODAY - timedelta(days=6)
MAPPING = "columns: {amount: amount, entity: resource, product_type: line type, date: day}\n"


def files_of(demo: Demo) -> tuple[Path, Path]:
    """Write the bill of a day as a file, and its mapping."""
    bill = read_day(known_facts(demo.file.parent / "acme.facts"), BILLING_TABLE, DAY).to_pylist()
    costs, mapping = demo.file.with_name("costs.csv"), demo.file.with_name("mapping.yaml")
    lines = [f"{DAY},{row['resource_id']},{row['product_type']},{row['total_cost']:f}" for row in bill]
    costs.write_text("\n".join(["day,resource,line type,amount", *lines, ""]), encoding="utf-8")
    mapping.write_text(MAPPING, encoding="utf-8")
    return costs, mapping


def test_the_same_and_different(chargeback: Run, calculated: Demo) -> None:
    """The exit code is 0 for equal costs, and 1 for others, with the differences, largest first."""
    costs, mapping = files_of(calculated)
    words = ["reconcile", "--config", str(calculated.file), "acme", str(costs), "--mapping", str(mapping)]
    said = chargeback(*words)
    assert (said.returncode, "the same to the last digit" in said.stdout) == (0, True), said.stdout + said.stderr
    with costs.open("a", encoding="utf-8") as file:
        file.write(f"{DAY},lkc-unknown,KAFKA_BASE,12.000000000001\n")
    said = chargeback(*words)
    assert said.returncode == 1
    assert "-12.000000000001" in said.stdout
    assert "1 of " in said.stdout
    before, after = (["--from", str(day), "--through", str(day)] for day in (DAY - ONE_DAY, DAY + ONE_DAY))
    other = chargeback(*words, *before)
    assert (other.returncode, "on other days left out" in other.stdout) == (1, True)
    nothing = chargeback(*words, *after)
    assert (nothing.returncode, "there is nothing to compare" in nothing.stdout) == (0, True)


def test_mistakes(chargeback: Run, calculated: Demo) -> None:
    """The exit code is 2; the message has line and column, or the key of the mapping."""
    costs, mapping = files_of(calculated)
    words = ["reconcile", "--config", str(calculated.file), "acme", str(costs), "-m", str(mapping)]
    costs.write_text("day,resource,line type,amount\n31.12.2026,a,b,1e\n", encoding="utf-8")
    said = chargeback(*words)
    assert said.returncode == 2
    assert "costs.csv: line 2, column 'amount': '1e' is not an amount" in said.stderr
    costs.write_bytes(b"\xff")
    assert (chargeback(*words).returncode, "is not UTF-8" in chargeback(*words).stderr) == (2, True)
    mapping.write_text("columns: {}\n", encoding="utf-8")
    said = chargeback(*words)
    assert (said.returncode, "columns.amount" in said.stderr) == (2, True)
    assert chargeback("reconcile", "--config", str(calculated.file), "acme", "none.csv", "-m", "x").returncode == 2


def test_nothing_is_gathered(chargeback: Run, demo: Demo) -> None:
    """For a tenant without data, the output says so and nothing is created."""
    costs, mapping = demo.file.with_name("costs.csv"), demo.file.with_name("mapping.yaml")
    costs.write_text("amount\n1\n", encoding="utf-8")
    mapping.write_text("columns: {amount: amount}\n", encoding="utf-8")
    words = ["reconcile", "--config", str(demo.file), "acme", str(costs), "-m", str(mapping)]
    assert "--from and --through are needed" in chargeback(*words).stderr
    said = chargeback(*words, "--from", str(DAY), "--to", str(DAY))
    assert (said.returncode, said.stderr) == (1, "error: tenant acme: no data has been gathered yet\n")
    assert not (demo.file.parent / "acme.db").exists()
