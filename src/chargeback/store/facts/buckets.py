"""Facts in object storage: S3 and what speaks like it, Azure Blob Storage and Google Cloud Storage.

An object appears whole when it is written, and is durable when the request is answered: what a local disk needs against
power cuts has nothing to do here. What costs is requests: the sizes of all files of a table are one listing, and so is
the look for new entries of its log.
"""

from __future__ import annotations

import hashlib
import re
import uuid
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from chargeback.config.object_store import AZURE, GOOGLE, S3, ObjectLocation
from chargeback.model.days import utc_now
from chargeback.store.clocks import ClockReading
from chargeback.store.facts.commits import MissingBucket
from chargeback.store.facts.copies import Copies, copies_in
from chargeback.store.facts.parallel import side_by_side
from chargeback.store.facts.places import DIGITS, LAST_CHECKPOINT, LOG, LogState, Written, entry_name

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, RetryConfig, S3Config

#: The folder, beside the tables, of objects that only try out the store.
PROBE: Final = ".probe"
# A store that is away refuses connections at once, so the time alone is what limits.
_MAX_RETRIES: Final = 10_000
_FIRST_WAIT: Final = timedelta(milliseconds=100)
_LONGEST_WAIT: Final = timedelta(seconds=3)
#: A request that gets no answer for so long is made again, if it only reads.
_TIMEOUT: Final = timedelta(seconds=60)
#: How long a bucket is not looked at again if no change was announced.
FRESH_SECONDS: Final = 30.0
_ONE_SECOND: Final = timedelta(seconds=1)
_ENTRY: Final = re.compile(r"(\d{20})\.json")
# A store that lacks the whole bucket answers like one that lacks the object.
_NO_BUCKET: Final = re.compile(r"NoSuchBucket|ContainerNotFound|specified bucket does not exist")
_MESSAGE: Final = re.compile(r"<Message>([^<]+)</Message>")
_SKEWED: Final = "RequestTimeTooSkewed"


class Bucket:
    """A prefix of a bucket; queries read copies of its files, which ``copies`` keeps on this machine.

    The clients of this class and of the Delta library are made of the same settings. They try again for a while what
    fails, so a server may be away for that long.
    """

    def __init__(self, location: ObjectLocation, copies: Copies) -> None:
        self._location = location
        self.copies: Final = copies
        self.root: Final = copies.folder_of(f"{location.server}/{location.bucket}/{location.prefix}")
        self.options: Final = _delta_options(location)
        self.fresh_seconds = FRESH_SECONDS
        with _translated(str(location)):
            self._store = _client(location)

    def __str__(self) -> str:
        return str(self._location)

    def __reduce__(self) -> tuple[Callable[..., Bucket], tuple[ObjectLocation, Path, int]]:
        """Let another process use the place: with clients of its own, and the copies of its machine."""
        return _used_elsewhere, (self._location, self.copies.folder, self.copies.max_bytes)

    def uri(self, table: str) -> str:
        """Return the URL of a table."""
        return f"{self._location}/{table}"

    def read(self, path: str) -> bytes:
        """Return the content of an object."""
        with _translated(self._named(path)):
            return bytes(obstore.get(self._store, self._path(path)).bytes())

    def open(self, path: str) -> pa.NativeFile:
        """Read an object into the memory."""
        return pa.BufferReader(self.read(path))

    def digest(self, path: str) -> str:
        """Return the SHA-256 of an object's content, which is not in the memory at once."""
        digest = hashlib.sha256()
        with _translated(self._named(path)):
            for chunk in obstore.get(self._store, self._path(path)):
                digest.update(chunk)
        return digest.hexdigest()

    def sizes(self, table: str) -> Callable[[str], int]:
        """Return what tells the size of an object as it was in one listing of the table."""
        sizes = dict(self._listed(table))

        def size_of(path: str) -> int:
            try:
                return sizes[self._path(path)]
            except KeyError:
                raise FileNotFoundError(f"{self._named(path)} does not exist") from None

        return size_of

    def data_files(self, table: str) -> list[str]:
        """Return the paths of the Parquet files of a table that are not part of its log."""
        return [
            path
            for path, _ in self._listed(table)
            if path.endswith(".parquet") and not path.startswith(f"{table}/{LOG}/")
        ]

    def write(self, folder: str, name: str, suffix: str, fill: Callable[[Path | pa.NativeFile], None]) -> Written:
        """Write an object in one request, from the memory. One whose answer is lost may be there: upkeep removes it."""
        sink = pa.BufferOutputStream()
        fill(sink)
        content: bytes = sink.getvalue().to_pybytes()
        path = f"{folder}/{name}-{hashlib.sha256(content).hexdigest()[:DIGITS]}{suffix}"
        self._put(path, content)
        return Written(path, len(content))

    def put(self, path: str, content: bytes) -> None:
        """Write an object in the place of one that may be there."""
        self._put(path, content)

    def copy(self, path: str, target: str) -> int:
        """Let the server copy an object."""
        with _translated(self._named(path)):
            obstore.copy(self._store, self._path(path), self._path(target))
            return obstore.head(self._store, self._path(target))["size"]

    def delete(self, path: str) -> None:
        """Delete an object."""
        with _translated(self._named(path)):
            obstore.delete(self._store, self._path(path))

    def prepare(self, table: str) -> None:
        """Do nothing: object storage has no folders."""

    def newest_version(self, table: str) -> int:
        """Return the version of the newest entry of a table's log; -1 where there is no table."""
        found = (_ENTRY.fullmatch(path.rpartition("/")[2]) for path, _ in self._listed(f"{table}/{LOG}"))
        return max((int(entry[1]) for entry in found if entry), default=-1)

    def log_state(self, table: str, version: int) -> LogState:
        """Return the state of a table's log for a reader that knows it up to ``version``: one listing of what comes
        after that entry by name, which is newer entries and the hint about the last checkpoint."""
        checkpoint, has_next = 0, False
        offset = f"{table}/{LOG}/{entry_name(version)}"
        with _translated(self._named(f"{table}/{LOG}")):
            for chunk in obstore.list(self._store, f"{table}/{LOG}", offset=offset):
                for found in chunk:
                    name = found["path"].rpartition("/")[2]
                    if name == LAST_CHECKPOINT:
                        state = f"{found['last_modified']} {found['e_tag']}"
                        checkpoint = 1 + zlib.crc32(state.encode())
                    has_next = has_next or name == entry_name(version + 1)
        return LogState(0, checkpoint, has_next)

    def settle(self, table: str, after: int) -> None:
        """Do nothing: an entry is durable when it is written."""

    def mend(self, table: str) -> Iterator[str]:
        """Yield nothing: there are no entries that were cut off."""
        return iter(())

    def remove_leftovers(self, table: str, age: timedelta) -> int:
        """Remove nothing: no object is half-written."""
        return 0

    def remove_empty_days(self, table: str, kept: Collection[date | None], age: timedelta) -> int:
        """Remove nothing: there are no folders."""
        return 0

    def is_empty(self) -> bool:
        """Return whether no object has the prefix."""
        return next(iter(self._listed(None)), None) is None

    def save(self, folder: Path, but: Sequence[str]) -> None:
        """Download all objects, except those below a folder that ``but`` names."""

        def download(path: str) -> None:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.read(path))

        side_by_side(download, [path for path, _ in self._listed(None) if not set(but).intersection(path.split("/"))])

    def load(self, folder: Path) -> None:
        """Upload the files of a folder: those of the logs last, so that no table is seen without its data."""

        def upload(path: Path) -> None:
            self._put(path.relative_to(folder).as_posix(), path.read_bytes())

        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        for of_logs in (False, True):
            side_by_side(upload, [path for path in paths if (LOG in path.parts) is of_logs])

    def try_out(self) -> None:
        """Check with a small object that the store does what the tables need: it reads, lists and deletes, and of two
        who create one object refuses the second.

        Raises:
            OSError: it does not, or it cannot be used. The message says what is missing.
        """
        name = f"{PROBE}/{uuid.uuid4().hex}"
        with _translated(self._named(name)):
            obstore.put(self._store, name, b"1", mode="create", use_multipart=False)
        try:
            self._check_object(name)
        except OSError:
            with suppress(OSError):
                self.delete(name)
            raise
        self.delete(name)

    def clock(self) -> ClockReading:
        """Return the time by which the store dates an object, which is deleted again: a whole second."""
        name = f"{PROBE}/{uuid.uuid4().hex}"
        with _translated(self._named(name)):
            before = utc_now()
            obstore.put(self._store, name, b"", use_multipart=False)
            after = utc_now()
            modified = obstore.head(self._store, name)["last_modified"]
        self.delete(name)
        return ClockReading(before, modified.replace(microsecond=0), after, _ONE_SECOND)

    def _check_object(self, name: str) -> None:
        """Check that an object cannot be created again, and is there as it was written."""
        try:
            obstore.put(self._store, name, b"2", mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            pass
        except BaseError as error:
            raise OSError(_message(self._named(name), error)) from error
        else:
            raise OSError(
                f"{self} ignores conditional writes (If-None-Match): two writers at once would lose a commit; "
                "use a store that has them"
            )
        if self.read(name) != b"1":
            raise OSError(f"{self} does not give back what was written")
        if name not in dict(self._listed(PROBE)):
            raise OSError(f"{self} does not list what was written")

    def _put(self, path: str, content: bytes) -> None:
        with _translated(self._named(path)):
            obstore.put(self._store, self._path(path), content, use_multipart=False)

    def _listed(self, folder: str | None) -> Iterator[tuple[str, int]]:
        """Yield the path and the size of each object in a folder, or of all."""
        with _translated(self._named(folder or "")):
            for chunk in obstore.list(self._store, folder):
                for found in chunk:
                    yield found["path"], found["size"]

    def _path(self, path: str) -> str:
        """A path in the place, of one that may be where queries open the file."""
        return path.removeprefix(f"{self.root}/")

    def _named(self, path: str) -> str:
        return f"{self}/{self._path(path)}".rstrip("/")


def _used_elsewhere(location: ObjectLocation, folder: Path, max_bytes: int) -> Bucket:
    return Bucket(location, copies_in(folder, max_bytes))


def _client(location: ObjectLocation) -> ObjectStore:
    """The client of a place."""
    settings, prefix = location.settings, location.prefix or None
    retry: RetryConfig = {
        "max_retries": _MAX_RETRIES,
        "retry_timeout": timedelta(seconds=settings.retry_seconds),
        "backoff": {"init_backoff": _FIRST_WAIT, "max_backoff": _LONGEST_WAIT, "base": 2},
    }
    client: ClientConfig = {"allow_http": settings.allow_http, "timeout": _TIMEOUT}
    if location.scheme == GOOGLE:
        return GCSStore(location.bucket, prefix=prefix, client_options=client, retry_config=retry)
    given = {"endpoint": settings.endpoint}
    if location.scheme == AZURE:
        given |= {"account_name": settings.access_key_id, "account_key": _secret(location)}
        azure = cast("AzureConfig", _known(given))
        return AzureStore(location.bucket, prefix=prefix, config=azure, client_options=client, retry_config=retry)
    given |= {
        "region": settings.region,
        "access_key_id": settings.access_key_id,
        "secret_access_key": _secret(location),
        # The server refuses what was damaged on its way.
        "checksum_algorithm": "sha256",
        "disable_bulk_delete": "true",
    }
    amazon = cast("S3Config", _known(given))
    return S3Store(location.bucket, prefix=prefix, config=amazon, client_options=client, retry_config=retry)


def _delta_options(location: ObjectLocation) -> dict[str, str]:
    """The same for the Delta library."""
    settings = location.settings
    given = {
        "max_retries": str(_MAX_RETRIES),
        "retry_timeout": f"{settings.retry_seconds}s",
        "backoff_config.init_backoff": f"{_FIRST_WAIT // timedelta(milliseconds=1)}ms",
        "backoff_config.max_backoff": f"{_LONGEST_WAIT // timedelta(seconds=1)}s",
        "timeout": f"{_TIMEOUT // timedelta(seconds=1)}s",
        "allow_http": "true" if settings.allow_http else None,
    }
    if location.scheme == S3:
        given |= {
            "aws_endpoint_url": settings.endpoint,
            "aws_region": settings.region,
            "aws_access_key_id": settings.access_key_id,
            "aws_secret_access_key": _secret(location),
        }
    elif location.scheme == AZURE:
        given |= {
            "azure_storage_endpoint": settings.endpoint,
            "azure_storage_account_name": settings.access_key_id,
            "azure_storage_account_key": _secret(location),
        }
    return _known(given)


def _secret(location: ObjectLocation) -> str | None:
    secret = location.settings.secret_access_key
    return None if secret is None else secret.get_secret_value()


def _known(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turn errors of the object storage into those of a :class:`~chargeback.store.facts.places.Place`."""
    try:
        yield
    except FileNotFoundError as error:
        if _NO_BUCKET.search(str(error)):
            kind = "container" if name.startswith(f"{AZURE}://") else "bucket"
            bucket = name.partition("://")[2].partition("/")[0]
            raise MissingBucket(f"the {kind} `{bucket}` does not exist: create it, or correct facts_path") from error
        raise FileNotFoundError(f"{name} does not exist") from error
    except (BaseError, ValueError) as error:
        raise OSError(_message(name, error)) from error


def _message(name: str, error: Exception) -> str:
    """What a store says about an object, in one line."""
    text = str(error)
    message = _MESSAGE.search(text)
    advice = " Set the clock of this machine." if _SKEWED in text else ""
    return f"{name} cannot be used: {unescape(message[1]) if message else text.splitlines()[0]}{advice}"
