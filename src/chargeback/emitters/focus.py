"""The emitter ``focus``: the bill in FOCUS as a folder, one whole file per billing period, with their metadata.

``data/<instance>/<month>.parquet``, ``metadata/data_generator.json``, ``metadata/dataset_instances.json``,
``metadata/schemas/<SchemaId>.json`` and ``metadata/recency/<instance>.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
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
from chargeback.emitters.files import write_whole
from chargeback.errors import EmitterError
from chargeback.model.focus import IDENTITIES, V1_2

_Metadata = Mapping[str, Any]


@dataclass(frozen=True)
class FocusFolder:
    """A folder of data in FOCUS. Each file is replaced as a whole; ``check`` is called while one is written, and may
    raise.

    Raises (everywhere): EmitterError when a file cannot be read or written; the message names it.
    """

    folder: Path
    form: str = "parquet"
    check: Callable[[], None] = lambda: None

    def data_file(self, metadata: _Metadata, month: date) -> Path:
        """Return where the rows of a month lie, of the dataset that the metadata describe."""
        return self.folder / "data" / _instance_name(metadata) / f"{month:%Y-%m}.{self.form}"

    def write_month(self, metadata: _Metadata, month: date, pieces: Iterable[bytes | memoryview]) -> Path:
        """Replace the file of a month; return where it is."""
        path = self.data_file(metadata, month)
        write_whole(path, pieces, self.check)
        return path

    def write_metadata(self, metadata: _Metadata) -> None:
        """Write the metadata of what was written. Those of other datasets in the folder, and of the days of other
        months, remain."""
        folder = self.folder / "metadata"
        self._write(folder / "data_generator.json", {"DataGenerator": metadata["DataGenerator"]})
        instances = folder / "dataset_instances.json"
        known = {each["DatasetInstanceId"]: each for each in self._read(instances).get("DatasetInstance", [])}
        known |= {each["DatasetInstanceId"]: each for each in metadata["DatasetInstance"]}
        self._write(instances, {"DatasetInstance": [known[key] for key in sorted(known)]})
        for schema in metadata["Schema"]:
            self._write(folder / "schemas" / f"{schema['SchemaId']}.json", schema)
        for recency in metadata["Recency"]:
            path = folder / "recency" / f"{_instance_name(metadata)}.json"
            self._write(path, merged_recency(self._read(path), recency))

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise EmitterError(f"{path} cannot be read: {error}; delete it to have it written again") from error
        return found

    def _write(self, path: Path, content: Any) -> None:
        write_whole(path, [f"{json.dumps(content, indent=2)}\n".encode()], self.check)


def _instance_name(metadata: _Metadata) -> str:
    name: str = metadata["DatasetInstance"][0]["DatasetInstanceName"]
    return name


def merged_recency(before: _Metadata, now: _Metadata) -> dict[str, Any]:
    """Return the recency of a dataset with some months written again: their days are those of ``now``.

    >>> old = {"TimeSectorStart": "2026-10-31T00:00:00Z", "TimeSectorLastUpdated": "2026-11-02T00:00:00Z"}
    >>> gone = {"TimeSectorStart": "2026-11-01T00:00:00Z", "TimeSectorLastUpdated": "2026-11-02T00:00:00Z"}
    >>> new = {"TimeSectorStart": "2026-11-02T00:00:00Z", "TimeSectorLastUpdated": "2026-11-03T00:00:00Z"}
    >>> merged = merged_recency({"TimeSectors": [old, gone]}, {"TimeSectors": [new]})
    >>> merged["TimeSectors"] == [old, new], merged["RecencyLastUpdated"]
    (True, '2026-11-03T00:00:00Z')
    """
    written = {_month(sector) for sector in now["TimeSectors"]}
    kept = [sector for sector in before.get("TimeSectors", []) if _month(sector) not in written]
    sectors = sorted([*kept, *now["TimeSectors"]], key=lambda sector: str(sector["TimeSectorStart"]))
    updated = max(sector["TimeSectorLastUpdated"] for sector in sectors)
    times = {"RecencyLastUpdated": updated, "DatasetInstanceLastUpdated": updated}
    return {**now, **times, "TimeSectors": sectors}


def _month(sector: _Metadata) -> str:
    return str(sector["TimeSectorStart"])[:7]


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
