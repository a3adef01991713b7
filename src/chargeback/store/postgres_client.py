"""PostgreSQL's client programs (``pg_dump``, ``pg_restore``), connected in the same way as the service.

The parameters are those that the service gives its driver, as one connection string for libpq. It has no secrets,
because every user of the host can read the arguments of a process. Secrets are passed in the environment or, if libpq
has no variable for them, in a service file that only this user can read.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL

from chargeback.config.storage import POSTGRESQL_SECRETS
from chargeback.errors import StorageError

#: libpq's environment variables for parameters that must not be arguments of a process.
_VARIABLES: Final = {"password": "PGPASSWORD", "passfile": "PGPASSFILE"}
_SERVICE: Final = "chargeback"


def run_client(url: URL, program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL's against the database at ``url``.

    Raises:
        StorageError: the program is not installed, or failed.
    """
    from psycopg.conninfo import make_conninfo

    parameters = connection_parameters(url)
    secrets = {name: parameters.pop(name) for name in POSTGRESQL_SECRETS & parameters.keys()}
    try:
        with _environment(secrets, has_service="service" in parameters) as environment:
            done = subprocess.run(  # noqa: S603 - the words are ours
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
