"""Damage to files of facts, as by a failing disk."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import FactTables


def file_of(facts: FactTables, name: str, day: date) -> DayFile:
    """Return the only file of a table for a day."""
    (file,) = facts.snapshot(name).within(DayRange(day, day + ONE_DAY))
    return file


def remove(path: Path) -> None:
    """Delete the file."""
    path.unlink()


def cut_short(path: Path) -> None:
    """Truncate the file to its first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path: Path) -> None:
    """Change one bit in the middle of the file; its size remains the same."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(content)


#: The kinds of damage, and whether it is detected only by reading the file.
DAMAGES: dict[str, tuple[Callable[[Path], None], bool]] = {
    "missing": (remove, False),
    "cut short": (cut_short, False),
    "with a flipped bit": (flip_a_bit, True),
}
