"""Facts in object storage: S3 and compatible stores, Azure Blob Storage and Google Cloud Storage.

An object appears whole when it is written, and is durable when the response arrives. Requests are expensive, so the
sizes of all files are one listing.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from chargeback.config.storage import AZURE, GOOGLE, S3, ObjectLocation
from chargeback.model.days import utc_now
from chargeback.store.clocks import ClockReading
from chargeback.store.facts.copies import Copies, copies_in
from chargeback.store.facts.errors import MissingBucket
from chargeback.store.facts.places import DIGITS, StoredFile, side_by_side

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, RetryConfig, S3Config

#: The folder, next to the tables, of objects that only try out the store.
PROBE: Final = ".probe"
# A store that is away refuses connections at once, so the time alone is what limits.
_MAX_RETRIES: Final = 10_000
_FIRST_WAIT: Final = timedelta(milliseconds=100)
_LONGEST_WAIT: Final = timedelta(seconds=3)
#: A request without a response after this time is repeated, if it only reads.
_TIMEOUT: Final = timedelta(seconds=60)
_ONE_SECOND: Final = timedelta(seconds=1)
# A store that lacks the whole bucket responds like one that lacks the object.
_NO_BUCKET: Final = re.compile(r"NoSuchBucket|ContainerNotFound|specified bucket does not exist")
_MESSAGE: Final = re.compile(r"<Message>([^<]+)</Message>")
_SKEWED: Final = "RequestTimeTooSkewed"


class Bucket:
    """A prefix of a bucket; queries read copies of its files, which ``copies`` keeps on this machine.

    The clients of this class and of the Delta library, which publishes, are made of the same settings. They try again
    for a while what fails, so a server may be away for that long.
    """

    def __init__(self, location: ObjectLocation, copies: Copies) -> None:
        self._location = location
        self.copies: Final = copies
        self.root: Final = copies.folder_of(f"{location.server}/{location.bucket}/{location.prefix}")
        self.options: Final = _delta_options(location)
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

    def sizes(self, folder: str = "") -> Callable[[str], int]:
        """Return a function that gives the size of an object as it was in one listing of a folder, or of all."""
        sizes = {found.path: found.size for found in self.files(folder)}

        def size_of(path: str) -> int:
            try:
                return sizes[self._path(path)]
            except KeyError:
                raise FileNotFoundError(f"{self._named(path)} does not exist") from None

        return size_of

    def files(self, folder: str = "") -> Iterator[StoredFile]:
        """Yield the objects in a folder, or all."""
        with _translated(self._named(folder)):
            for chunk in obstore.list(self._store, folder or None):
                for found in chunk:
                    yield StoredFile(found["path"], found["size"], found["last_modified"])

    def write(self, folder: str, name: str, suffix: str, content: bytes) -> str:
        """Write an object in one request. If the response is lost, the object may exist: upkeep removes it."""
        path = f"{folder}/{name}-{hashlib.sha256(content).hexdigest()[:DIGITS]}{suffix}"
        self._put(path, content)
        return path

    def put(self, path: str, content: bytes) -> None:
        """Write an object in the place of one that may be there."""
        self._put(path, content)

    def copy(self, path: str, target: str) -> None:
        """Let the server copy an object; if it does not find it, read and write it: some servers take the escaped path
        that a copy names for the path itself."""
        try:
            with _translated(self._named(path)):
                obstore.copy(self._store, self._path(path), self._path(target))
        except FileNotFoundError:
            self._put(target, self.read(path))

    def delete(self, path: str) -> None:
        """Delete an object."""
        with _translated(self._named(path)):
            obstore.delete(self._store, self._path(path))

    def remove_empty_days(self, table: str, kept: Collection[date | None], age: timedelta) -> int:
        """Remove nothing: there are no folders."""
        return 0

    def is_empty(self) -> bool:
        """Return whether no object has the prefix."""
        return next(self.files(), None) is None

    def save(self, folder: Path, paths: Iterable[str]) -> None:
        """Download some objects."""

        def download(path: str) -> None:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.read(path))

        side_by_side(download, list(paths))

    def load(self, folder: Path) -> None:
        """Upload the files of a folder."""

        def upload(path: Path) -> None:
            self._put(path.relative_to(folder).as_posix(), path.read_bytes())

        side_by_side(upload, sorted(path for path in folder.rglob("*") if path.is_file()))

    def try_out(self) -> None:
        """Check with a small object that the store reads, lists and deletes what is written.

        Raises:
            OSError: it does not, or it cannot be used. The message says what is missing.
        """
        name = f"{PROBE}/{uuid.uuid4().hex}"
        self._put(name, b"1")
        try:
            is_read = self.read(name) == b"1"
            is_listed = any(found.path == name for found in self.files(PROBE))
        finally:
            with suppress(OSError):
                self.delete(name)
        if not is_read:
            raise OSError(f"{self} does not give back what was written")
        if not is_listed:
            raise OSError(f"{self} does not list what was written")

    def clock(self) -> ClockReading:
        """Return the store's time, from an object that is written and deleted again: a whole second."""
        name = f"{PROBE}/{uuid.uuid4().hex}"
        with _translated(self._named(name)):
            before = utc_now()
            obstore.put(self._store, name, b"", use_multipart=False)
            after = utc_now()
            modified = obstore.head(self._store, name)["last_modified"]
        self.delete(name)
        return ClockReading(before, modified.replace(microsecond=0), after, _ONE_SECOND)

    def _put(self, path: str, content: bytes) -> None:
        with _translated(self._named(path)):
            obstore.put(self._store, self._path(path), content, use_multipart=False)

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
    """Return a store's message about an object, in one line."""
    text = str(error)
    message = _MESSAGE.search(text)
    advice = " Set the clock of this machine." if _SKEWED in text else ""
    return f"{name} cannot be used: {unescape(message[1]) if message else text.splitlines()[0]}{advice}"
