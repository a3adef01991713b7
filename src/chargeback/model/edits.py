"""Edits of what people write: each names the version that it replaces, so that no change is lost."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, TypeVar

from chargeback.errors import EditConflict
from chargeback.model.days import render_instant


class Edited(Protocol):
    """One version of something that people edit."""

    @property
    def version(self) -> int:
        """Its number: 1 for something new."""

    @property
    def is_removal(self) -> bool:
        """Whether this version removed it."""

    @property
    def etag(self) -> str:
        """The strong ETag of the version. A restore can lead to two versions with the same number, so it has more."""

    @property
    def last_edit(self) -> str:
        """Who wrote the version, and when, as a sentence without its full stop."""


E = TypeVar("E", bound=Edited)


def timed_etag(version: int, at: datetime) -> str:
    """Return the ETag of a version that was written at an instant."""
    return f'"{version}-{int(at.timestamp() * 1_000_000):x}"'


def edit_text(edited: Edited, who: str, name: str, at: datetime) -> str:
    """Return who made the version of ``name``, and when."""
    what = "removed" if edited.is_removal else "changed" if edited.version > 1 else "created"
    return f"{who} {what} {name} at {render_instant(at)}"


def last_edit_of(what: str, last: Edited | None) -> str:
    """Return who edited something last, and when; None for what never was there."""
    return f"there is no {what}" if last is None else last.last_edit


def present_version(last: E | None) -> E | None:
    """Return the version that is there; None if there is none, or no more."""
    return None if last is None or last.is_removal else last


def replaced_version(what: str, last: E | None, expected: int | None) -> E | None:
    """Return the version that an edit replaces, whose number is ``expected``; None for something that is not there.

    Raises:
        EditConflict: another version is there, or none.
    """
    present = present_version(last)
    if expected != (None if present is None else present.version):
        raise EditConflict(last_edit_of(what, last))
    return present
