"""Finds the files of a bill, in a folder or in object storage, as providers lay them out.

AWS writes a manifest per billing period, Azure one per run of an export. A file that a manifest supersedes does not
count, and one that it names must be there. Without manifests all files count.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import from_url

from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.focus_files.settings import BillSettings
from chargeback.errors import SourceDataError, SourceUnavailable

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SOURCE: Final = "bill"
_CSV: Final = (".csv", ".csv.gz", ".csv.zst")
_PARQUET: Final = (".parquet", ".pq")
_MANIFEST: Final = re.compile(r"(?i)(^|[-_.])manifest\.json$")
# A store that is away refuses connections at once, so the time alone is what limits.
_MAX_RETRIES: Final = 10_000
_PERIOD: Final = re.compile(r"(?i)billing_period=([0-9-]+)")


@dataclass(frozen=True, slots=True)
class BillFile:
    """A file: its name below the place of the bill, its size in bytes, when it was written."""

    name: str
    size: int
    modified: datetime

    @property
    def is_parquet(self) -> bool:
        """Whether it is a Parquet file, by its name."""
        return self.name.lower().endswith(_PARQUET)


class Files(Protocol):
    """A place with files."""

    def listed(self) -> list[BillFile]:
        """Return all files, by name.

        Raises:
            SourceUnavailable: the place cannot be read.
        """

    def content(self, file: BillFile) -> bytes:
        """Return the content of a small file."""

    def local(self, file: BillFile) -> Path:
        """Return a path on this machine with the content of the file."""

    def keep(self, files: Sequence[BillFile]) -> None:
        """Remove copies of other files."""


def open_files(context: TenantContext, bill: BillSettings) -> Files:
    """Return the place of the files; nothing is read yet."""
    return _Bucket(context, bill) if bill.is_remote else _Folder(bill.files)


class _Folder:
    """Files on this machine: a folder with all below it, one file, or those that match a pattern."""

    def __init__(self, place: str) -> None:
        self._place = place
        fixed = [part for part in Path(place).parts if not has_magic(part)]
        self._root = Path(*fixed) if has_magic(place) else Path(place)

    def listed(self) -> list[BillFile]:
        """See :class:`Files`."""
        with _readable(self._place):
            if has_magic(self._place):
                pattern = str(Path(self._place).relative_to(self._root))
                paths = [path for path in self._root.glob(pattern) if path.is_file()]
            elif self._root.is_file():
                return [_described(self._root, self._root.name)]
            elif self._root.is_dir():
                paths = [path for path in self._root.rglob("*") if path.is_file()]
            else:
                raise SourceUnavailable(f"{self._place} does not exist", source=SOURCE)
            return [_described(path, path.relative_to(self._root).as_posix()) for path in sorted(paths)]

    def content(self, file: BillFile) -> bytes:
        """See :class:`Files`."""
        with _readable(self._place):
            return self.local(file).read_bytes()

    def local(self, file: BillFile) -> Path:
        """See :class:`Files`."""
        return self._root if self._root.is_file() else self._root / file.name

    def keep(self, files: Sequence[BillFile]) -> None:
        """There are no copies."""


class _Bucket:
    """Objects below a prefix. The engine reads copies of them, which are kept on this machine until they change."""

    def __init__(self, context: TenantContext, bill: BillSettings) -> None:
        self._place = bill.files.rstrip("/")
        self._folder = Path(context.state_dir) / "bills" / _digest(context.tenant_id, self._place)
        self._store = _client(self._place, bill)

    def listed(self) -> list[BillFile]:
        """See :class:`Files`."""
        with _readable(self._place):
            found = [each for page in obstore.list(self._store) for each in page]
        files = [BillFile(each["path"], each["size"], each["last_modified"]) for each in found]
        return sorted(files, key=lambda file: file.name)

    def content(self, file: BillFile) -> bytes:
        """See :class:`Files`."""
        with _readable(f"{self._place}/{file.name}"):
            return bytes(obstore.get(self._store, file.name).bytes())

    def local(self, file: BillFile) -> Path:
        """See :class:`Files`."""
        copy = self._copy(file)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            unfinished = copy.with_suffix(".part")
            with _readable(f"{self._place}/{file.name}"), unfinished.open("wb") as target:
                for chunk in obstore.get(self._store, file.name):
                    target.write(chunk)
            unfinished.replace(copy)
        return copy

    def keep(self, files: Sequence[BillFile]) -> None:
        """See :class:`Files`."""
        kept = {self._copy(file).name for file in files}
        for path in self._folder.glob("*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _copy(self, file: BillFile) -> Path:
        return self._folder / _digest(file.name, str(file.size), file.modified.isoformat())


def current_files(files: Files, bill: BillSettings, now: datetime) -> list[BillFile]:
    """Return the files that count, by name.

    Raises:
        SourceUnavailable: the place cannot be read, or a file is still being written; the next run tries again.
        SourceDataError: there is no file, or a manifest names one that is not there.
    """
    listed = files.listed()
    manifests = [file for file in listed if _MANIFEST.search(PurePosixPath(file.name).name)]
    endings = {"auto": _CSV + _PARQUET, "csv": _CSV, "parquet": _PARQUET}[bill.format]
    data = [file for file in listed if file.name.lower().endswith(endings)]
    if manifests:
        data = _named_by(_newest(files, manifests), data)
    if not data:
        raise SourceDataError(f"{bill.files} has no file ending in {', '.join(endings)}", source=SOURCE)
    settled = now - timedelta(seconds=bill.settle_seconds)
    unsettled = [file.name for file in data if file.modified > settled]
    if unsettled and bill.settle_seconds:
        raise SourceUnavailable(
            f"{unsettled[0]} was written less than {bill.settle_seconds} seconds ago, so it may not be complete: the"
            " next run reads it",
            source=SOURCE,
        )
    return data


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The names of the data files of one period, and when they were written."""

    file: BillFile
    period: str
    names: tuple[str, ...]
    written: datetime


def _newest(files: Files, manifests: Sequence[BillFile]) -> list[_Manifest]:
    newest: dict[str, _Manifest] = {}
    for file in manifests:
        manifest = _manifest(file, files.content(file))
        known = newest.get(manifest.period)
        if known is None or (known.written, known.file.name) < (manifest.written, manifest.file.name):
            newest[manifest.period] = manifest
    return list(newest.values())


def _manifest(file: BillFile, content: bytes) -> _Manifest:
    try:
        document: Any = json.loads(content)
        if "blobs" in document:
            run = document.get("runInfo") or {}
            names = tuple(str(each["blobName"]) for each in document["blobs"])
            period = f"{run.get('startDate')} {run.get('endDate')}"
            submitted = datetime.fromisoformat(run["submittedTime"]) if run.get("submittedTime") else file.modified
            return _Manifest(file, period, names, submitted.astimezone(UTC))
        names = tuple(map(str, document["dataFiles"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceDataError(f"{file.name} is no manifest of AWS or Azure ({error!r})", source=SOURCE) from None
    found = _PERIOD.search(file.name)
    return _Manifest(file, found[1] if found else file.name, names, file.modified)


def _named_by(manifests: Sequence[_Manifest], data: Sequence[BillFile]) -> list[BillFile]:
    """Return the files that the manifests name. They have names from the root of the bucket, which the bill's place
    may be below, so the longest common end of a name decides."""
    by_name: Mapping[str, BillFile] = {file.name: file for file in data}
    named: dict[str, BillFile] = {}
    for manifest in manifests:
        for name in manifest.names:
            path = unquote(urlsplit(name).path).lstrip("/") if "://" in name else name.lstrip("/")
            parts = path.split("/")
            ends = ("/".join(parts[start:]) for start in range(len(parts)))
            found = next((by_name[end] for end in ends if end in by_name), None)
            if found is None:
                raise SourceDataError(
                    f"{manifest.file.name} names {name}, which is not there: export the period again", source=SOURCE
                )
            named[found.name] = found
    return sorted(named.values(), key=lambda file: file.name)


def _client(url: str, bill: BillSettings) -> ObjectStore:
    settings = bill.object_store
    secret = settings.secret_access_key.get_secret_value() if settings.secret_access_key else None
    names = (
        ("azure_storage_endpoint", "azure_storage_account_name", "azure_storage_account_key")
        if url.startswith("az:")
        else ("aws_endpoint", "aws_access_key_id", "aws_secret_access_key")
    )
    values = (settings.endpoint, settings.access_key_id, secret)
    config: Any = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    if settings.region is not None and url.startswith("s3:"):
        config["aws_region"] = settings.region
    with _readable(url):
        store: ObjectStore = from_url(
            url,
            config=config,
            client_options={"allow_http": settings.allow_http},
            retry_config={"max_retries": _MAX_RETRIES, "retry_timeout": timedelta(seconds=settings.retry_seconds)},
        )
    return store


def _described(path: Path, name: str) -> BillFile:
    found = path.stat()
    return BillFile(name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn errors of the file system and of object storage into those of a source."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceUnavailable(f"{what} does not exist", source=SOURCE) from error
    except (OSError, BaseError, ValueError) as error:
        raise SourceUnavailable(f"{what} cannot be read: {str(error).splitlines()[0]}", source=SOURCE) from error


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\x1f".join(texts).encode(), digest_size=12).hexdigest()
