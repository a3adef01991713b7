"""Fact tables of the benchmarks: opened next to their database, and replaced day by day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa

from chargeback.model.days import utc_now
from chargeback.store.control.catalogue import instant_of_change
from chargeback.store.control.database import ControlDatabase
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import FactTables


def tables_in(facts: Path, database: Path | None = None) -> FactTables:
    """Return the tables in a folder, whose catalogue is in a database, by default a new one next to the folder."""
    if database is not None:
        return FactTables(facts, ControlDatabase(f"sqlite:///{database}"))
    control = ControlDatabase(f"sqlite:///{facts.with_suffix('.db')}")
    control.upgrade()
    facts.mkdir(parents=True, exist_ok=True)
    return FactTables(facts, control)


def replace_tables(
    facts: FactTables,
    day: date,
    tables: Mapping[str, pa.Table],
    register: DimensionRegister | None = None,
    at: datetime | None = None,
) -> None:
    """Replace a day of some tables, with the dimensions of its rows, as a run does: files first, then a transaction."""
    contents = facts.prepare_tables(day, tables)
    if register is not None:
        register.write()
    with facts.control.write(durable=True) as connection:
        instant = instant_of_change(connection, at or utc_now())
        if register is not None:
            register.record(connection, instant)
        facts.replace(connection, list(contents.values()), instant)
    if register is not None:
        register.recorded()
    facts.changed()
