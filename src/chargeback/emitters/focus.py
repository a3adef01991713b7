"""The emitter ``focus``: the bill in FOCUS, one whole file per billing period, with their metadata."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any, ClassVar, Literal

from chargeback.emitters.contract import (
    MONTHLY,
    Emitter,
    EmitterContext,
    EmitterParams,
    EmitterType,
    Facts,
    FocusKind,
    LocalPath,
    Period,
)
from chargeback.emitters.focus_files import FocusFolder
from chargeback.model.focus import IDENTITIES, V1_2


class FocusParams(EmitterParams):
    """The folder, and which data is in it."""

    output_dir: LocalPath
    version: Literal["1.2", "1.4"] = V1_2
    split: Literal["identities", "topics", "none"] = IDENTITIES
    format: Literal["csv", "parquet"] = "parquet"
    basis: Literal["posted", "accrual"] = "posted"

    @property
    def is_posted(self) -> bool:
        """Whether months of the books have what was posted to them."""
        return self.basis == "posted"


class FocusEmitter(Emitter):
    """Writes the file of each period, and what is said of it."""

    def __init__(self, params: FocusParams) -> None:
        self._params = params

    def emit(self, periods: Sequence[Period], facts: Facts) -> None:
        """Write the file of each period completely."""
        kind = FocusKind(self._params.version, self._params.split, self._params.format, self._params.is_posted)
        folder = FocusFolder(self._params.output_dir, kind.form, facts.check)
        for period in periods:
            metadata = facts.focus_metadata(period, kind)
            folder.write_month(metadata, period.start, facts.focus(period, kind))
            folder.write_metadata(metadata)


class FocusType(EmitterType):
    """The type of emitter that writes data in FOCUS."""

    params_model = FocusParams
    aggregations: ClassVar[frozenset[str]] = frozenset({MONTHLY})

    def open(self, context: EmitterContext, params: Any, stop: Event) -> FocusEmitter:
        """Return an emitter that writes below ``params.output_dir``; the folder is created with the first file."""
        return FocusEmitter(params)

    def follows_books(self, params: Any) -> bool:
        """Return whether months of the books have what was posted to them."""
        return bool(params.is_posted)

    def destinations(self, context: EmitterContext, params: Any) -> tuple[str, ...]:
        """Return the folder of the dataset."""
        return (f"{params.output_dir.resolve()}: {context.tenant_name} by {params.split}",)


emitter_type = FocusType()
