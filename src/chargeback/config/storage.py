"""The location of a tenant's data, a database and a folder or object storage, in a normalised form.

So two tenants that share one are detected.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from chargeback import disk
from chargeback.config.settings import CacheSettings, StorageSettings
from chargeback.settings import ObjectStoreSettings, secrets_in

S3: Final = "s3"
AZURE: Final = "az"
GOOGLE: Final = "gs"
_SCHEMES: Final = (S3, AZURE, GOOGLE)

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,62}")
#: Part of a prefix: no character that readers of Delta tables interpret, and not only dots.
_PART: Final = re.compile(r"(?!\.+$)[A-Za-z0-9_.+@~-]+")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

SQLITE_DRIVERS = frozenset({"sqlite", "sqlite+pysqlite"})
POSTGRESQL_DRIVERS = frozenset({"postgresql", "postgresql+psycopg", "postgresql+psycopg2"})
POSTGRESQL_PORT = 5432
#: Parameters of libpq that are secrets; a connection string may have them in its query.
POSTGRESQL_SECRETS = frozenset(
    {"password", "passfile", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"}
)
#: Characters with a special meaning in the path of a table: DuckDB reads patterns and columns (``name=value``), Delta
#: decodes URL escapes.
_UNREADABLE = re.compile(r"[*?\[\]%=\\\x00-\x1f\x7f]")

#: libpq's option that chooses a schema.
_SCHEMA: Final = re.compile(r"(?:^|\s)-csearch_path=(\w+)(?=\s|$)")


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """A prefix of a bucket (of a container in Azure), how it is reached, and where copies of its files are kept.

    ``prefix`` has no slash at its ends; it is empty for the whole bucket.
    """

    scheme: str
    bucket: str
    prefix: str
    settings: ObjectStoreSettings = field(repr=False)
    cache: CacheSettings = field(default_factory=CacheSettings)

    @classmethod
    def of(cls, url: str, settings: ObjectStoreSettings, cache: CacheSettings | None = None) -> ObjectLocation:
        """Return the place that a URL names: ``s3://bucket/prefix``, also with ``az`` or ``gs``.

        Raises:
            ValueError: it names none. The message shows no value.
        """
        scheme, _, rest = url.strip().partition("://")
        bucket, _, path = rest.partition("/")
        parts = [part for part in path.split("/") if part]
        if scheme not in _SCHEMES:
            raise ValueError("should be a folder, or s3://bucket/prefix, az://container/prefix or gs://bucket/prefix")
        if not _BUCKET.fullmatch(bucket):
            raise ValueError("names no bucket: s3://bucket/prefix")
        if not all(_PART.fullmatch(part) for part in parts):
            raise ValueError("the prefix should consist of letters, digits and _ . - + @ ~, in parts between slashes")
        return cls(scheme, bucket, "/".join(parts), settings, cache or CacheSettings())

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def server(self) -> str:
        """The server in a normal form: that of the endpoint, or the provider's; of Azure, with the account."""
        account = (self.settings.access_key_id or "") if self.scheme == AZURE else ""
        if self.settings.endpoint is None:
            return f"{self.scheme}:{account}"
        address = urlsplit(self.settings.endpoint.lower())
        port = address.port or _DEFAULT_PORTS[address.scheme]
        return f"{self.scheme}:{account}@{address.hostname}:{port}{address.path}"

    def tried_for(self, seconds: float | None) -> ObjectLocation:
        """Return the same place, where a failed request is made again for that many seconds at most."""
        if seconds is None or seconds >= self.settings.retry_seconds:
            return self
        return replace(self, settings=self.settings.model_copy(update={"retry_seconds": max(int(seconds), 1)}))

    def enclosing(self) -> list[Hashable]:
        """Return the prefixes that contain this place, the widest first; the last one is the place itself."""
        parts = self.prefix.split("/") if self.prefix else []
        return [(self.server, self.bucket, *parts[:length]) for length in range(len(parts) + 1)]

    def secrets(self) -> Iterator[str]:
        """Yield the texts that must not be shown."""
        return secrets_in(self.settings)


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """A tenant's control database, and the folder or the object storage of its facts.

    ``connection_string`` is normalised: ``sqlite:////absolute/path`` or ``postgresql+psycopg://…``; a folder is
    absolute. ``database`` is the same for two spellings of the same database; it holds no credentials.
    """

    connection_string: SecretStr
    facts_path: Path | ObjectLocation
    database: str = field(repr=False)

    @property
    def database_file(self) -> Path | None:
        """The SQLite file; None for PostgreSQL."""
        url = make_url(self.connection_string.get_secret_value())
        return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None

    def secrets(self) -> frozenset[str]:
        """The texts that must not be shown: the connection string, and each secret in it."""
        text = self.connection_string.get_secret_value()
        url = make_url(text)
        parts = [url.password, *(value for name in POSTGRESQL_SECRETS for value in url.normalized_query.get(name, ()))]
        of_objects = self.facts_path.secrets() if isinstance(self.facts_path, ObjectLocation) else ()
        return frozenset({text, *(str(part) for part in parts if part), *of_objects})

    def claims(self) -> tuple[set[Hashable], set[Hashable]]:
        """Return what is this location's own, and that with everything that contains it. Two locations can share
        something only if one contains what is the other's own."""
        database, (facts, around) = self._database_claims(), self._facts_claims()
        return database | facts, database | around

    def shares_database_with(self, other: StorageLocation) -> bool:
        """Return whether both locations are the same database."""
        return not self._database_claims().isdisjoint(other._database_claims())

    def shares_facts_with(self, other: StorageLocation) -> bool:
        """Return whether the facts of both are in the same place, or one place contains the other."""
        (mine, around_mine), (theirs, around_theirs) = self._facts_claims(), other._facts_claims()
        return not (mine.isdisjoint(around_theirs) and theirs.isdisjoint(around_mine))

    def _database_claims(self) -> set[Hashable]:
        file = self.database_file
        return {self.database, *(() if file is None else _inode(file))}

    def _facts_claims(self) -> tuple[set[Hashable], set[Hashable]]:
        facts = self.facts_path
        if isinstance(facts, ObjectLocation):
            around = facts.enclosing()
            return {around[-1]}, set(around)
        real = _real(facts)
        own: set[Hashable] = {real, *_inode(facts)}
        return own, own.union(real.parents)


class StorageSettingError(ValueError):
    """A storage setting that cannot be used; ``key`` is the one to change. The message shows no value."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def locate(settings: StorageSettings, folder: Path, cache: CacheSettings | None = None) -> StorageLocation:
    """Return the location that the settings name. Relative paths start at ``folder``, the configuration file's folder;
    copies of files that are in object storage are kept in ``cache``.

    Raises:
        StorageSettingError: the database is of an unknown kind, or no place for facts is known.
    """
    url, database = normalise_url(settings.connection_string.get_secret_value(), folder)
    is_sqlite = url.get_backend_name() == "sqlite"
    written = settings.facts_path
    if written is not None and "://" in written:
        facts: Path | ObjectLocation = _objects(settings, written, cache, is_sqlite=is_sqlite)
    elif settings.object_store.model_fields_set:
        raise StorageSettingError("object_store", "is only for a facts_path such as s3://bucket/prefix: remove it")
    else:
        facts = _folder(written, url, folder)
    if settings.database_schema is not None:
        if is_sqlite:
            raise StorageSettingError("database_schema", "only PostgreSQL has schemas: remove it")
        url, database = in_schema(url, settings.database_schema), f"{database} {settings.database_schema}"
    return StorageLocation(SecretStr(url.render_as_string(hide_password=False)), facts, database)


def _objects(settings: StorageSettings, url: str, cache: CacheSettings | None, *, is_sqlite: bool) -> ObjectLocation:
    """Return the place in object storage that the settings name."""
    if is_sqlite:
        raise StorageSettingError(
            "facts_path",
            "facts in object storage need PostgreSQL: a SQLite database is for one machine; "
            "use a folder, or change connection_string",
        )
    try:
        location = ObjectLocation.of(url, settings.object_store, cache)
    except ValueError as error:
        raise StorageSettingError("facts_path", str(error)) from None
    if location.scheme == GOOGLE and settings.object_store.model_fields_set - {"retry_seconds"}:
        raise StorageSettingError(
            "object_store", "of a gs:// bucket only retry_seconds can be set: credentials come from the environment"
        )
    return location


def _folder(written: str | None, url: URL, folder: Path) -> Path:
    """Return the folder of the facts, by default in the folder of the SQLite database."""
    if written is not None:
        facts = _path("facts_path", written, folder)
    elif url.get_backend_name() == "sqlite":
        facts = Path(str(url.database)).with_suffix(".facts")
    else:
        raise StorageSettingError(
            "facts_path",
            "facts_path is required with PostgreSQL: a folder for the tenant's facts, or s3://bucket/prefix",
        )
    if found := _UNREADABLE.search(str(facts)):
        where = "connection_string" if written is None else "facts_path"
        raise StorageSettingError(
            where,
            f"the folder of the facts is below a name with {found[0]!r}, which readers of Delta tables interpret as "
            "a pattern, an escape or a column: configure another folder in facts_path",
        )
    return facts


def normalise_url(text: str, folder: Path) -> tuple[URL, str]:
    """Return the connection string in its normal form, and its database without credentials.

    Raises:
        StorageSettingError: it is not a connection string of a supported kind.
    """
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise StorageSettingError(
            "connection_string", "should be an address such as sqlite:///data/acme.db or postgresql://user@host/name"
        ) from None
    if url.drivername in SQLITE_DRIVERS:
        return _sqlite(url, folder)
    if url.drivername in POSTGRESQL_DRIVERS:
        return _postgresql(url)
    raise StorageSettingError("connection_string", "only sqlite:/// and postgresql:// databases are supported")


def _sqlite(url: URL, folder: Path) -> tuple[URL, str]:
    name = url.database or ":memory:"
    if ":memory:" in name or "mode=memory" in str(url.query):
        raise StorageSettingError(
            "connection_string", "an in-memory database would be lost; use a file: sqlite:///acme.db"
        )
    if name.startswith("file:") or url.query or url.host:
        raise StorageSettingError(
            "connection_string", "use only the name of the file: sqlite:///acme.db or sqlite:////data/acme.db"
        )
    path = _path("connection_string", name, folder)
    if path.is_dir():
        raise StorageSettingError("connection_string", "is a folder; use a file in it")
    address = URL.create("sqlite", database=str(path))
    if make_url(address.render_as_string(hide_password=False)).database != str(path):
        raise StorageSettingError(
            "connection_string", "the name of the file, or of a parent folder, contains `?`; choose another"
        )
    return address, f"sqlite {_real(path)}"


def _path(key: str, written: str, folder: Path) -> Path:
    try:
        return disk.locate(written, folder)
    except ValueError as error:
        raise StorageSettingError(key, str(error)) from None


def _postgresql(url: URL) -> tuple[URL, str]:
    query = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    host = url.host or query.get("host") or query.get("hostaddr") or ""
    name = url.database or query.get("dbname")
    if not name:
        raise StorageSettingError("connection_string", "contains no database: postgresql://user@host/name")
    port = str(url.port or query.get("port") or POSTGRESQL_PORT)
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
        raise StorageSettingError("connection_string", "its port should be a number from 1 to 65535")
    return url.set(drivername="postgresql+psycopg"), f"postgresql {_host(host)}:{port}/{name}"


def _host(name: str) -> str:
    """Return a host in its normal form; a socket folder and every address of this machine become ``localhost``."""
    host = name.strip().lower().rstrip(".").strip("[]")
    if not host or host.startswith("/") or host == "localhost":
        return "localhost"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return "localhost" if address.is_loopback else str(address)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _inode(path: Path) -> list[Hashable]:
    """Return what names of the same file or folder have in common; nothing if there is none."""
    try:
        found = path.stat()
    except OSError:
        return []
    return [(found.st_dev, found.st_ino)]


def options_of(url: URL) -> str:
    """Return the options for the server that a connection string has; the last one counts, as for libpq."""
    options = url.query.get("options", "")
    return options if isinstance(options, str) else options[-1]


def in_schema(url: URL, schema: str) -> URL:
    """The same database, restricted to the tables of one schema. Everything that understands libpq's parameters,
    PostgreSQL's own programs included, finds them there."""
    return url.update_query_dict({"options": f"{options_of(url)} -csearch_path={schema}".strip()})


def apart_from_schema(url: URL) -> tuple[URL, str | None]:
    """The opposite of :func:`in_schema`: the database, and the schema that was chosen in it, if any."""
    given = options_of(url)
    found = _SCHEMA.search(given)
    if found is None:
        return url, None
    rest = _SCHEMA.sub("", given).strip()
    bare = url.difference_update_query(["options"])
    return (bare.update_query_dict({"options": rest}) if rest else bare), found[1]
