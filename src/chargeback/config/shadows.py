"""Shadows: policies that are calculated in addition to those in force, without effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from chargeback.config.document import values_of
from chargeback.disk import locate
from chargeback.errors import ConfigProblem, ConfigurationError
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.settings import Settings

#: From how many days on a shadow says enough.
ENOUGH_DAYS: Final = 30
#: How long one is calculated that does not say until when.
_USUAL: Final = timedelta(days=90)
_MOST_BYTES: Final = 2**20

ShadowName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]


class ShadowSettings(Settings):
    """One shadow. ``policies``, or a YAML ``file``, say what ``allocation_policies`` would be; the days from
    ``start_date`` to ``end_date`` (inclusive, 90 days if it is left out) are calculated by it. Callers who see a part
    of the bill see it only if it is ``visible``."""

    policies: dict[str, Any] | list[Any] | None = None
    file: Annotated[str, Field(min_length=1)] | None = None
    start_date: date
    end_date: date | None = None
    visible: bool = False

    @model_validator(mode="after")
    def _in_order(self) -> ShadowSettings:
        if self.end_date is not None and self.end_date < self.start_date:
            raise ValueError("end_date should not be before start_date")
        if (self.policies is None) == (self.file is None):
            raise ValueError("should have either policies or a file with them")
        return self


@dataclass(frozen=True)
class Shadow:
    """A shadow: its name, its policies as ``allocation_policies`` has them, its days, and whether callers who see a
    part of the bill see it."""

    name: str
    policies: Mapping[str, Any] | list[Any]
    days: DayRange
    visible: bool


def read_shadow(name: str, settings: ShadowSettings, folder: Path) -> Shadow:
    """Return a shadow, with its policies as they are in its file now; a relative path starts at ``folder``.

    Raises:
        ConfigurationError: the file cannot be read, or has no policies.
    """
    policies = settings.policies if settings.file is None else _read(settings.file, folder)
    end = settings.end_date or settings.start_date + _USUAL - ONE_DAY
    return Shadow(name, policies or {}, DayRange(settings.start_date, end + ONE_DAY), settings.visible)


def _read(written: str, folder: Path) -> Mapping[str, Any] | list[Any]:
    """Return the policies of a file."""
    try:
        with locate(written, folder).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        read = None if len(content) > _MOST_BYTES else values_of(content.decode())
    except OSError as error:
        raise _problem(f"{written} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise _problem(f"{written}: {error}") from None
    policies = read.get("allocation_policies", read) if isinstance(read, Mapping) else read
    if not isinstance(policies, Mapping | list):
        raise _problem(f"{written} should be a mapping of product types to policies, or a list of versions")
    return policies


def _problem(message: str) -> ConfigurationError:
    return ConfigurationError([ConfigProblem("file", message)])
