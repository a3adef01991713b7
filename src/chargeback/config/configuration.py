"""What came out of reading the file: everything a process needs to know, and nothing it must look up again.

A configuration travels to other processes (each run is one). Ecosystems may come from files dropped on a server,
which a new process has not imported yet; so a tenant is sent as what was written, and is read again on arrival.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from sqlalchemy.engine import make_url

from chargeback.config.emitters import ConfiguredEmitter
from chargeback.config.settings import ApiSettings, FeatureSettings, LoggingSettings, TenantSettings
from chargeback.config.storage import StorageLocation
from chargeback.ecosystems.contract import Ecosystem
from chargeback.ecosystems.discovery import Discovered, load_ecosystems
from chargeback.ecosystems.settings import PluginSettings


class TopicStatus(StrEnum):
    """``topic_attribution_status`` of a tenant."""

    DISABLED = "disabled"
    ENABLED = "enabled"
    CONFIG_ERROR = "config_error"


@dataclass(frozen=True)
class Tenant:
    """One tenant, ready to work for.

    ``plugin_settings`` is an instance of ``ecosystem.settings_model``. ``topic_error`` says why the topic overlay
    cannot work, where ``topic_status`` is ``config_error``; the rest of the tenant does.
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

    def __reduce__(self) -> tuple[Any, ...]:
        rest = (self.topic_status, self.topic_error, self.emitters)
        return _restore, (self.name, self.settings, self.storage, self.plugins_path, rest)


def _restore(
    name: str,
    settings: TenantSettings,
    storage: StorageLocation,
    plugins_path: Path | None,
    rest: tuple[TopicStatus, str | None, tuple[ConfiguredEmitter, ...]],
) -> Tenant:
    ecosystem = discover(plugins_path).ecosystems[settings.ecosystem]
    plugin_settings = ecosystem.settings_model.model_validate(settings.plugin_settings)
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
            connection = tenant.storage.connection_string.get_secret_value()
            found.update(_secrets_in(tenant.plugin_settings), {connection})
            found.update(*(_secrets_in(each.params) for each in tenant.emitters))
            if password := make_url(connection).password:
                found.add(str(password))
        return frozenset(found - {""})


def _secrets_in(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets_in(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _secrets_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _secrets_in(each)


def state_dir() -> Path:
    """The folder in which the processes of this user on this host share small things, such as rate limits.

    ``CHARGEBACK_STATE_DIR`` moves it.
    """
    chosen = os.environ.get("CHARGEBACK_STATE_DIR")
    folder = Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"chargeback-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
