"""What came out of reading the file: everything a process needs to know, and nothing it must look up again.

A configuration travels to other processes (each run is one). Ecosystems may come from files dropped on a server,
which a new process has not imported yet; so a tenant is sent as what was written, and is read again on arrival.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from chargeback.config.emitters import ConfiguredEmitter
from chargeback.config.settings import ApiSettings, FeatureSettings, LoggingSettings, TenantSettings
from chargeback.config.storage import StorageLocation
from chargeback.disk import explain_denial, private_folder
from chargeback.ecosystems.contract import Ecosystem
from chargeback.ecosystems.discovery import Discovered, load_ecosystems
from chargeback.ecosystems.settings import PluginSettings
from chargeback.errors import StorageError
from chargeback.settings import FOLDER, secrets_in

log = logging.getLogger(__name__)


class TopicStatus(StrEnum):
    """``topic_attribution_status`` of a tenant."""

    DISABLED = "disabled"
    ENABLED = "enabled"
    CONFIG_ERROR = "config_error"


@dataclass(frozen=True)
class Tenant:
    """One tenant, ready to work for.

    ``plugin_settings`` is an instance of ``ecosystem.settings_model``. ``topic_error`` says why the topic overlay
    cannot work, where ``topic_status`` is ``config_error``; the rest of the tenant does. ``folder`` is that of the
    configuration file, where relative paths start.
    """

    name: str
    settings: TenantSettings
    storage: StorageLocation
    ecosystem: Ecosystem
    plugin_settings: PluginSettings = field(repr=False)
    plugins_path: Path | None = None
    topic_status: TopicStatus = TopicStatus.DISABLED
    topic_error: str | None = None
    emitters: tuple[ConfiguredEmitter, ...] = ()
    folder: Path = Path()

    def __reduce__(self) -> tuple[Any, ...]:
        rest = (self.topic_status, self.topic_error, self.emitters, self.folder)
        return _restore, (self.name, self.settings, self.storage, self.plugins_path, rest)


def _restore(
    name: str,
    settings: TenantSettings,
    storage: StorageLocation,
    plugins_path: Path | None,
    rest: tuple[TopicStatus, str | None, tuple[ConfiguredEmitter, ...], Path],
) -> Tenant:
    ecosystem = discover(plugins_path).ecosystems[settings.ecosystem]
    context = {FOLDER: rest[-1]}
    plugin_settings = ecosystem.settings_model.model_validate(settings.plugin_settings, context=context)
    return Tenant(name, settings, storage, ecosystem, plugin_settings, plugins_path, *rest)


@cache
def discover(plugins_path: Path | None) -> Discovered:
    """Every ecosystem there is; looked for once in a process."""
    return load_ecosystems(None if plugins_path is None else str(plugins_path))


@dataclass(frozen=True)
class Configuration:
    """The whole configuration. ``tenants`` maps their names, in the order of the file."""

    path: Path
    logging: LoggingSettings
    features: FeatureSettings
    api: ApiSettings
    plugins_path: Path | None
    tenants: Mapping[str, Tenant]

    def secrets(self) -> frozenset[str]:
        """Every secret value that is configured, for the logs to hide."""
        found: set[str] = set()
        for tenant in self.tenants.values():
            found.update(secrets_in(tenant.plugin_settings), tenant.storage.secrets())
            found.update(*(secrets_in(each.params) for each in tenant.emitters))
        return frozenset(found - {""})


def state_dir() -> Path:
    """The folder in which the processes of this user on this host share small things, such as rate limits.

    ``CHARGEBACK_STATE_DIR`` moves it. By default it lies in the user's cache, which every session and every job of the
    user has, else in the folder of the session, else among the temporary files; always in one that is this user's
    alone. Where there is none, a new one is made, which this process shares with nobody.

    Raises:
        StorageError: the folder that ``CHARGEBACK_STATE_DIR`` names does not exist and cannot be made.
    """
    chosen = os.environ.get("CHARGEBACK_STATE_DIR")
    if chosen:
        folder = Path(chosen)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"the state folder {folder} cannot be created: {error.strerror}{explain_denial(folder)}; "
                "set the environment variable CHARGEBACK_STATE_DIR to another one"
            ) from error
        return folder
    for candidate in _places_for_state():
        with suppress(OSError):
            return private_folder(candidate)
    log.warning("there is no private folder for shared state; set CHARGEBACK_STATE_DIR: rate limits are not shared")
    return Path(tempfile.mkdtemp(prefix="chargeback-"))


def _places_for_state() -> Iterator[Path]:
    """Where the folder may be; those below somebody else's folder are not ours to trust."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    # A home may be on the network: the clocks of two hosts have nothing to do with each other.
    below = {cache: f"chargeback/{socket.gethostname()}", os.environ.get("XDG_RUNTIME_DIR", ""): "chargeback"}
    for base, name in below.items():
        if Path(base).is_absolute() and _owner(Path(base)) == os.getuid():
            yield Path(base) / name
    yield Path(tempfile.gettempdir()) / f"chargeback-{os.getuid()}"


def _owner(path: Path) -> int | None:
    """Whose a folder is, or, of one that is not there yet, whose the folder is in which it would be made."""
    for folder in (path, path.parent):
        with suppress(OSError):
            return folder.stat().st_uid
    return None
