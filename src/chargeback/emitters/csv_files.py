"""The emitter ``csv``: one file per period, with the rows and the format of the API's CSV export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Final

from pydantic import AfterValidator

from chargeback.emitters.contract import Emitter, EmitterContext, EmitterParams, EmitterType, Facts, LocalPath, Period
from chargeback.emitters.files import check_template, file_name, write_whole

_PLACEHOLDERS: Final = ("tenant_id", "tenant_name", "emitter", "date")


def _template(value: str) -> str:
    return check_template(value, _PLACEHOLDERS, required=("date",))


class CsvParams(EmitterParams):
    """The folder and the names of the files."""

    output_dir: LocalPath
    filename_template: Annotated[str, AfterValidator(_template)] = "{tenant_id}_{date}.csv"


class CsvEmitter(Emitter):
    """Writes one file per period."""

    def __init__(self, context: EmitterContext, params: CsvParams) -> None:
        self._context = context
        self._params = params

    def emit(self, periods: Sequence[Period], facts: Facts) -> None:
        """Write the file of each period completely."""
        for period in periods:
            write_whole(self.path_of(period), facts.csv(period), facts.check)

    def path_of(self, period: Period) -> Path:
        """Return the path of a period's file."""
        return self._params.output_dir / named(self._params, self._context, period.start.isoformat())


def named(params: CsvParams, context: EmitterContext, date: str) -> str:
    """Return the name of the file of the period that begins on ``date``."""
    values = {"tenant_id": context.tenant_id, "tenant_name": context.tenant_name, "emitter": context.name, "date": date}
    return file_name(params.filename_template, values)


class CsvType(EmitterType):
    """The type of emitter that writes CSV files."""

    params_model = CsvParams

    def open(self, context: EmitterContext, params: Any, stop: Event) -> CsvEmitter:
        """Return an emitter that writes below ``params.output_dir``; the folder is created with the first file."""
        return CsvEmitter(context, params)

    def destinations(self, context: EmitterContext, params: Any) -> tuple[str, ...]:
        """Return the files' path, with a placeholder for the date."""
        return (str(params.output_dir.resolve() / named(params, context, "*")),)


emitter_type = CsvType()
