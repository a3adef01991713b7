"""Back up and restore the whole storage of one tenant, at one point in time.

A backup is a folder: the control database (``control.db``, or ``control.dump`` as ``pg_dump`` writes it), the files
that it names (``facts/``), and ``backup.json``, which names the tenant. The copy of the database is of one point in
time, and files never change: runs go on meanwhile.

PostgreSQL's client programs (``pg_dump``, ``pg_restore``) connect in the same way as the service: the parameters that
it gives its driver are one connection string for libpq. That string has no secrets, because every user of the host can
read the arguments of a process. Secrets are passed in the environment or, if libpq has no variable for them, in a
service file that only this user can read.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url

from chargeback.config.storage import POSTGRESQL_SECRETS, apart_from_schema
from chargeback.disk import explain_denial, fsync
from chargeback.errors import DamagedFacts, StorageError
from chargeback.model.days import render_instant, utc_now
from chargeback.store.control.catalogue import every_file, save_published_revision
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.lease import clear_holder
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.files import check_content
from chargeback.store.tenant import TenantStore

LABEL: Final = "backup.json"
FACTS: Final = "facts"
_SQLITE, _POSTGRESQL = "control.db", "control.dump"
_UNFINISHED = ".partial"
#: A revision of the catalogue that no storage has: everything is published again.
_NEVER: Final = -1
#: libpq's environment variables for parameters that must not be arguments of a process.
_VARIABLES: Final = {"password": "PGPASSWORD", "passfile": "PGPASSFILE"}
#: The name of our section in a service file.
_SERVICE: Final = "chargeback"


@dataclass(frozen=True, slots=True)
class BackupLabel:
    """The tenant of a backup, the time when it was made, the revision of its control database, and the schema of
    PostgreSQL that its tables were in, if one was chosen."""

    tenant_name: str
    tenant_id: str
    ecosystem: str
    made_at: str
    revision: str
    database_schema: str | None = None


def back_up(store: TenantStore, connection_string: str, folder: Path) -> Path:
    """Copy the storage of a tenant into a new folder below ``folder``, and return that folder. It appears when the copy
    is complete and on the disk; an incomplete copy is removed.

    Raises:
        StorageError: a file cannot be read or written.
    """
    made_at = utc_now()
    target = folder / f"{store.tenant_name}-{made_at:%Y%m%dT%H%M%SZ}"
    unfinished = target.with_name(target.name + _UNFINISHED)
    try:
        with _reporting(f"{target} cannot be written"):
            unfinished.mkdir(parents=True)
            revision = str(store.control.revisions().stamped)
            url = make_url(connection_string)
            schema = apart_from_schema(url)[1]
            _copy_control(url, unfinished, schema)
            # Read after the copy was made, the list has every file that the copy names: files stay for a week after
            # the catalogue has given them up.
            with store.control.read() as connection:
                paths = sorted({each.path for each in every_file(connection, kept_only=True)})
            store.facts.place.save(unfinished / FACTS, paths)
            made = render_instant(made_at)
            label = BackupLabel(store.tenant_name, store.tenant_id, store.ecosystem, made, revision, schema)
            (unfinished / LABEL).write_text(json.dumps(asdict(label), indent=2) + "\n", encoding="utf-8")
            for path in (*unfinished.rglob("*"), unfinished):
                fsync(path)
            unfinished.rename(target)
            fsync(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return target


def read_label(backup: Path) -> BackupLabel:
    """Return the label of a backup.

    Raises:
        StorageError: the folder is not a complete backup.
    """
    try:
        return BackupLabel(**json.loads((backup / LABEL).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise StorageError(f"{backup} is not a backup: it has no readable {LABEL}") from None


def restore(backup: Path, store: TenantStore, connection_string: str) -> BackupLabel:
    """Restore the storage of a tenant from a backup; the tenant's present storage must be empty.

    Raises:
        SchemaError: the backup was made by a newer version.
        StorageError: the storage is not empty, or the backup is damaged, another tenant's, of another kind of
            database, or incomplete.
    """
    label = read_label(backup)
    if (label.tenant_id, label.ecosystem) != (store.tenant_id, store.ecosystem):
        raise StorageError(f"the backup is of tenant_id {label.tenant_id} ({label.ecosystem}), not of this tenant")
    url = make_url(connection_string)
    schema = apart_from_schema(url)[1]
    if label.database_schema != schema:
        raise StorageError(
            f"the backup has {_schema_named(label.database_schema)}, the configuration {_schema_named(schema)}: "
            "restore into the same one"
        )
    _check_target_is_empty(url, store)
    with _reporting(f"{backup} cannot be restored"):
        if (backup / FACTS).is_dir():
            store.facts.place.load(backup / FACTS)
        _restore_control(url, backup, schema)  # last: without it, the storage counts as not restored
    store.prepare()
    _check_files(store)
    with store.control.write() as connection:
        clear_holder(connection)
        save_published_revision(connection, _NEVER)
    return label


def _check_target_is_empty(url: URL, store: TenantStore) -> None:
    if not store.facts.place.is_empty():
        raise StorageError(f"{store.facts.place} is not empty; move it away first")
    if url.get_backend_name() == "sqlite":
        if url.database and Path(url.database).exists():
            raise StorageError(f"{url.database} exists; move it away first, with its -wal and -shm files")
        return
    with ControlDatabase(url.render_as_string(hide_password=False)) as database:
        if database.revisions().stamped is not None:
            raise StorageError("the database already has tables of a tenant; restore into an empty one")


def _schema_named(schema: str | None) -> str:
    return "no database_schema" if schema is None else f"database_schema {schema}"


def _check_files(store: TenantStore) -> None:
    """Check that the restored files are those that were written.

    Raises:
        StorageError: one is missing or damaged.
    """
    with store.control.read() as connection:
        named = every_file(connection, kept_only=True)
    damage = []
    for each in named:
        with translate_file_errors(each.table):
            try:
                check_content(store.facts.day_file(each))
            except DamagedFacts as error:
                damage.append(error.message)
    if damage:
        raise StorageError(f"the backup is damaged, {len(damage)} of {len(named)} files: {damage[0]}")


def _copy_control(url: URL, target: Path, schema: str | None) -> None:
    if url.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(url.database))) as source, closing(sqlite3.connect(target / _SQLITE)) as copy:
            source.backup(copy)
        return
    part = [] if schema is None else [f"--schema={schema}"]
    form = ["--format=custom", "--no-owner", "--no-privileges"]
    run_client(url, "pg_dump", *form, *part, f"--file={target / _POSTGRESQL}")


def _restore_control(url: URL, backup: Path, schema: str | None) -> None:
    is_sqlite = url.get_backend_name() == "sqlite"
    saved = backup / (_SQLITE if is_sqlite else _POSTGRESQL)
    if not saved.is_file():
        raise StorageError(f"{backup} has no {saved.name}: it belongs to a tenant with another kind of database")
    if is_sqlite:
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(saved, str(url.database))
        return
    part = []
    if schema is not None:
        # The backup has the tables of the schema, and not the schema, which may be there already.
        with ControlDatabase(url.render_as_string(hide_password=False)) as database:
            database.create_schema()
        part = [f"--schema={schema}"]
    run_client(url, "pg_restore", "--no-owner", "--no-privileges", "--single-transaction", *part, str(saved))


def run_client(url: URL, program: str, *arguments: str) -> None:
    """Run a client program of PostgreSQL against the database at ``url``.

    Raises:
        StorageError: the program is not installed, or failed.
    """
    from psycopg.conninfo import make_conninfo

    parameters = connection_parameters(url)
    secrets = {name: parameters.pop(name) for name in POSTGRESQL_SECRETS & parameters.keys()}
    try:
        with _environment(secrets, has_service="service" in parameters) as environment:
            done = subprocess.run(  # noqa: S603 - the arguments are ours
                [program, *arguments, f"--dbname={make_conninfo(**parameters)}"],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
    except FileNotFoundError:
        raise StorageError(f"{program} is not installed here (Debian: apt-get install postgresql-client)") from None
    if done.returncode != 0:
        raise StorageError(f"{program} failed: {' '.join(done.stderr.split())[:500]}")


def connection_parameters(url: URL) -> dict[str, str]:
    """Return a connection string as parameters of libpq, including secrets."""
    dialect = url.set(drivername="postgresql+psycopg").get_dialect()()
    _, parameters = dialect.create_connect_args(url)
    return {name: str(value) for name, value in parameters.items()}


@contextmanager
def _environment(secrets: Mapping[str, str], *, has_service: bool) -> Iterator[dict[str, str]]:
    """Yield the environment of a program, with ``secrets``."""
    named = {_VARIABLES[name]: value for name, value in secrets.items() if name in _VARIABLES}
    unnamed = {name: value for name, value in secrets.items() if name not in _VARIABLES}
    if not unnamed:
        yield os.environ | named
        return
    if has_service:
        raise StorageError(f"{', '.join(sorted(unnamed))}: put it into the service file that `service` names")
    with tempfile.TemporaryDirectory(prefix="chargeback-") as folder:
        file = Path(folder) / "pg_service.conf"
        file.touch(mode=0o600)
        lines = [f"[{_SERVICE}]", *(f"{name}={value}" for name, value in unnamed.items())]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield os.environ | named | {"PGSERVICEFILE": str(file), "PGSERVICE": _SERVICE}


class _reporting:  # noqa: N801 - reads as a statement: `with _reporting("…")`
    """Convert errors of the operating system and of SQLite to StorageError."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError | sqlite3.Error):
            place = error.filename if isinstance(error, PermissionError) else None
            why = explain_denial(Path(place)) if isinstance(place, str) else ""
            raise StorageError(f"{self._what}: {error}{why}") from error
