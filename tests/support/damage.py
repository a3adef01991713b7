"""What disks do to files of facts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import FactTables


def file_of(facts: FactTables, name: str, day: date) -> DayFile:
    """The one file that a table has of a day."""
    (file,) = facts.snapshot(name).within(DayRange(day, day + ONE_DAY))
    return file


def remove(path: Path) -> None:
    """The file is gone."""
    path.unlink()


def cut_short(path: Path) -> None:
    """The second half of the file was never written."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path: Path) -> None:
    """One bit in the middle of the file has changed; its size has not."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(content)


#: What may become of a file, and whether that shows only to who reads it.
DAMAGES: dict[str, tuple[Callable[[Path], None], bool]] = {
    "missing": (remove, False),
    "cut short": (cut_short, False),
    "with a flipped bit": (flip_a_bit, True),
}
