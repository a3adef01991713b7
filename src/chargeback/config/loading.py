"""Reads the configuration file: syntax, environment, structure, plugins, and rules that span several tenants.

All mistakes are reported at once: each part is read separately, and rules that span several parts are checked for the
parts that could be read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from chargeback.config.access import AccessSettings
from chargeback.config.configuration import (
    AdditionalBill,
    Configuration,
    Tenant,
    TopicStatus,
    additional_bill,
    discover,
)
from chargeback.config.document import Document, KeyPath, parse_document
from chargeback.config.emitters import EmitterReader
from chargeback.config.environment import read_environment
from chargeback.config.journal import TemplateFileError
from chargeback.config.problems import hide_values, problems_of, suggestion, unknown_key
from chargeback.config.settings import (
    ApiSettings,
    CacheSettings,
    FeatureSettings,
    FileSettings,
    LoggingSettings,
    McpSettings,
    StorageSettings,
    TenantSettings,
)
from chargeback.config.storage import StorageLocation, StorageSettingError, locate
from chargeback.disk import explain_denial
from chargeback.disk import locate as locate_path
from chargeback.ecosystems.contract import Ecosystem
from chargeback.ecosystems.discovery import Discovered
from chargeback.ecosystems.settings import PluginSettings
from chargeback.errors import ConfigProblem, ConfigurationError, PluginError, in_one_line
from chargeback.plugins import calling
from chargeback.settings import FOLDER, Whole, is_loopback

_Model = TypeVar("_Model", bound=BaseModel)

_TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
#: Far more than any configuration has. A device or a log that is named by mistake must not fill the memory.
MAX_FILE_BYTES = 32 * 2**20

_OPEN_TO_ALL = (
    "other machines could reach the service here, and access.mode is none, so that everybody may see and change "
    "everything: identify callers with access.mode, or, if everyone who reaches it may, set "
    "access.allow_anonymous: true"
)
_TOPICS = "topic_attribution"
_whole: TypeAdapter[int] = TypeAdapter(Whole)


def load_configuration(path: Path) -> Configuration:
    """Return the configuration in the file at ``path``; relative paths in it start at its folder.

    Raises:
        ConfigurationError: it is not valid; ``problems`` has every mistake with its path in the file, and shows no
            value.
    """
    path = Path(path).absolute()
    document = parse_document(_read(path), read_environment(path.parent))
    reader = _Reader(path, document)
    configuration = reader.read()
    if reader.problems:
        raise ConfigurationError(reader.problems)
    return configuration


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) <= MAX_FILE_BYTES:
            return content.decode("utf-8-sig")
        message = f"{path} is larger than {MAX_FILE_BYTES // 2**20} MiB, the limit for a configuration"
    except FileNotFoundError:
        message = f"{path} does not exist; `chargeback init --path {path.name}` creates one"
    except IsADirectoryError:
        message = f"{path} is a folder, not a file"
    except UnicodeDecodeError:
        message = f"{path} is not UTF-8 text"
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}{explain_denial(path, write=False)}"
    except ValueError:
        message = "the name of a file must not contain the character NUL"
    raise ConfigurationError([ConfigProblem("", message)])


@dataclass
class _Reader:
    """Reads one document part by part and collects its problems."""

    path: Path
    document: Document
    problems: list[ConfigProblem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._noted = set(self.document.problems)
        self._incomplete = {each.path for each in self.document.problems}

    def read(self) -> Configuration:
        """Return what could be read; it is complete only if ``problems`` remains empty."""
        self.problems.extend(self.document.problems)
        values = self.document.values
        if not isinstance(values, Mapping):
            self._add_problem((), "the file should be a mapping of keys; `tenants` is the one that is required")
            values = {"tenants": {}}
        for name in [name for name in values if name not in FileSettings.model_fields]:
            self._add_problem((name,), unknown_key(name, FileSettings))
        plugins_path = self._plugins_path(values.get("plugins_path"))
        api = self._section("api", ApiSettings)
        return Configuration(
            path=self.path,
            logging=self._section("logging", LoggingSettings),
            features=self._section("features", FeatureSettings),
            api=api,
            access=self._access(api, values.get("tenants")),
            plugins_path=plugins_path,
            tenants=self._tenants(values, plugins_path),
            mcp=self._section("mcp", McpSettings),
        )

    def _section(self, name: str, model: type[_Model]) -> _Model:
        values = self.document.at((name,))
        return self._validated(model, {} if values is None else values, (name,)) or model()

    def _access(self, api: ApiSettings, tenants: Any) -> AccessSettings:
        """Return the access rules; without authentication everyone may see everything, but only on this machine unless
        it is allowed explicitly."""
        written = self.document.at(("access",))
        access = self._validated(AccessSettings, {} if written is None else written, ("access",))
        if access is None:
            return AccessSettings()
        if access.mode == "none" and not access.allow_anonymous and not is_loopback(api.host):
            self._add_problem(("api", "host"), _OPEN_TO_ALL)
        known = [str(name) for name in tenants] if isinstance(tenants, Mapping) else []
        for number, role in enumerate(access.roles):
            for position, name in enumerate(role.tenants):
                if known and name not in known:
                    hint = suggestion(name, known) or f"; there are {', '.join(known)}"
                    key_path = ("access", "roles", number, "tenants", position)
                    self._add_problem(key_path, f"there is no such tenant{hint}")
        return access

    def _plugins_path(self, written: Any) -> Path | None:
        if written is None:
            return None
        try:
            folder = locate_path(written, self.path.parent).resolve() if isinstance(written, str) else None
        except ValueError as error:
            self._add_problem(("plugins_path",), str(error))
            return None
        if folder is None or not folder.is_dir():
            self._add_problem(("plugins_path",), "should be an existing folder")
            return None
        return folder

    def _tenants(self, values: Mapping[str, Any], plugins_path: Path | None) -> dict[str, Tenant]:
        written = values.get("tenants")
        if not isinstance(written, Mapping) or not written:
            self._add_problem(("tenants",), "should be a mapping with at least one tenant")
            return {}
        discovered = discover(plugins_path)
        tenants: dict[str, Tenant] = {}
        locations: dict[str, StorageLocation] = {}
        for name, value in written.items():
            tenant = self._tenant(name, value, discovered, locations, plugins_path)
            if tenant is not None:
                tenants[name] = tenant
        self._check_emitter_destinations(tenants)
        self._check_storage_is_not_shared(locations)
        return tenants

    def _tenant(
        self,
        name: str,
        written: Any,
        discovered: Discovered,
        locations: dict[str, StorageLocation],
        plugins_path: Path | None,
    ) -> Tenant | None:
        key_path: KeyPath = ("tenants", name)
        if not _TENANT_NAME.fullmatch(name):
            self._add_problem(
                key_path,
                "a tenant's name consists of at most 63 letters, digits, `_`, `.` and `-`, the first a letter or digit",
            )
        if not isinstance(written, Mapping):
            self._add_problem(key_path, "should be a mapping of keys")
            return None
        self._check_lookback_exceeds_cutoff(key_path, written)
        location = self._location((*key_path, "storage"), written.get("storage"))
        if location is not None:
            locations[name] = location
        ecosystem = self._ecosystem((*key_path, "ecosystem"), written.get("ecosystem"), discovered)
        # `plugin_settings:` without a value means the same as no such key.
        values = dict(written) | {"plugin_settings": written.get("plugin_settings") or {}}
        topic_error = _leave_out_topics(values, ecosystem)
        plugin = self._plugin_settings((*key_path, "plugin_settings"), values["plugin_settings"], ecosystem)
        reader = EmitterReader(self.document, self.path.parent)
        emitters = reader.read((*key_path, "plugin_settings", "emitters"), values["plugin_settings"])
        for problem in reader.problems:
            self._add(problem)
        settings = self._validated(TenantSettings, values, key_path)
        if settings is None or location is None or ecosystem is None or plugin is None:
            return None
        topics = self._topics((*key_path, "plugin_settings", _TOPICS), ecosystem, plugin, topic_error)
        bills = self._additional_bills((*key_path, "additional_bills"), settings, values, discovered)
        tenant = Tenant(
            name, settings, location, ecosystem, plugin, plugins_path, *topics, emitters, self.path.parent, bills
        )
        self._check_focus((*key_path, "focus", "services"), tenant)
        self._check_journal((*key_path, "journal", "templates"), tenant)
        self._check_shadows((*key_path, "shadow_policies"), tenant)
        self._check_drivers((*key_path, "anomalies", "drivers"), tenant)
        return tenant

    def _additional_bills(
        self, key_path: KeyPath, settings: TenantSettings, values: Mapping[str, Any], discovered: Discovered
    ) -> tuple[AdditionalBill, ...]:
        bills: list[AdditionalBill] = []
        for number, each in enumerate(settings.additional_bills):
            ecosystem = self._ecosystem((*key_path, number, "ecosystem"), each.ecosystem, discovered)
            written = values["additional_bills"][number].get("plugin_settings") or {}
            plugin = self._plugin_settings((*key_path, number, "plugin_settings"), written, ecosystem)
            if ecosystem is None or plugin is None:
                continue
            try:
                bills.append(additional_bill(each, settings.currency, ecosystem, plugin))
            except ValueError as mistake:
                self._add_problem((*key_path, number, "focus", "services"), str(mistake))
        return tuple(bills)

    def _check_focus(self, key_path: KeyPath, tenant: Tenant) -> None:
        try:
            _ = tenant.focus
        except ValueError as mistake:
            self._add_problem(key_path, str(mistake))

    def _check_journal(self, key_path: KeyPath, tenant: Tenant) -> None:
        try:
            _ = tenant.journal
        except TemplateFileError as mistake:
            self._add_problem((*key_path, mistake.name), str(mistake))

    def _check_shadows(self, key_path: KeyPath, tenant: Tenant) -> None:
        try:
            _ = tenant.shadows
        except ConfigurationError as mistake:
            for each in mistake.problems:
                self._add_problem(key_path, str(each))

    def _check_drivers(self, key_path: KeyPath, tenant: Tenant) -> None:
        drivers = tenant.settings.anomalies.drivers
        known = tenant.measures if drivers else frozenset()
        for group, measure in drivers.items():
            if measure not in known:
                there = f"there are {', '.join(sorted(known))}" if known else "there are none"
                self._add_problem((*key_path, group), f"no policy uses the measure {measure}; {there}")

    def _check_emitter_destinations(self, tenants: Mapping[str, Tenant]) -> None:
        reader = EmitterReader(self.document, self.path.parent)
        reader.check_distinct_destinations(
            {name: (tenant.settings, tenant.emitters) for name, tenant in tenants.items()}
        )
        for problem in reader.problems:
            self._add(problem)

    def _topics(
        self, key_path: KeyPath, ecosystem: Ecosystem, plugin: PluginSettings, error: str | None
    ) -> tuple[TopicStatus, str | None]:
        """Return the status of the topic overlay, and why it cannot work if that is so; ``error`` is the reason if it
        is known already. An ecosystem without topics has no function ``topic_settings``."""
        read = getattr(ecosystem, "topic_settings", None)
        settings = None
        if error is None and read is not None:
            try:
                settings = read(plugin)
            except ConfigurationError as mistake:
                error = in_one_line(mistake)
            except PluginError as failure:
                error = failure.message
        if error is not None:
            return TopicStatus.CONFIG_ERROR, hide_values(error, key_path, self.document)
        enabled = settings is not None and bool(getattr(settings, "enabled", True))
        return (TopicStatus.ENABLED if enabled else TopicStatus.DISABLED), None

    def _check_lookback_exceeds_cutoff(self, key_path: KeyPath, written: Mapping[str, Any]) -> None:
        fields = TenantSettings.model_fields
        days = [written.get(key, fields[key].default) for key in ("lookback_days", "cutoff_days")]
        try:
            lookback, cutoff = map(_whole.validate_python, days)
        except ValidationError:
            return  # reported by the tenant's own model
        if lookback <= cutoff:
            message = f"lookback_days ({lookback}) must be greater than cutoff_days ({cutoff})"
            self._add_problem((*key_path, "lookback_days"), hide_values(message, key_path, self.document))

    def _location(self, key_path: KeyPath, written: Any) -> StorageLocation | None:
        try:
            return locate(StorageSettings.model_validate(written), self.path.parent, self._cache())
        except ValidationError:
            return None  # reported by the tenant's own model
        except StorageSettingError as error:
            self._add_problem((*key_path, error.key), str(error))
            return None

    def _cache(self) -> CacheSettings:
        """Return where copies of objects are kept; mistakes in it are reported with the other features."""
        features = self.document.at(("features",))
        with suppress(ValidationError):
            return FeatureSettings.model_validate(features or {}, context={FOLDER: self.path.parent}).cache
        return CacheSettings()

    def _ecosystem(self, key_path: KeyPath, name: Any, discovered: Discovered) -> Ecosystem | None:
        if not isinstance(name, str) or not name:
            return None  # reported by the tenant's own model
        if name in discovered.ecosystems:
            return discovered.ecosystems[name]
        known = sorted(discovered.ecosystems)
        if name in discovered.failures:
            self._add_problem(key_path, f"this ecosystem could not be imported: {discovered.failures[name]}")
        else:
            hint = suggestion(name, known) or f"; there are {', '.join(known)}"
            self._add_problem(key_path, f"there is no such ecosystem{hint}")
            for source, failure in discovered.failures.items():
                self._add_problem(key_path, f"perhaps it is in {source}, which could not be imported: {failure}")
        return None

    def _plugin_settings(self, key_path: KeyPath, values: Any, ecosystem: Ecosystem | None) -> PluginSettings | None:
        if ecosystem is None:
            return None
        try:
            with calling(f"plugin {ecosystem.name}", "settings_model", declared=(ConfigurationError,)):
                return self._validated(ecosystem.settings_model, values, key_path)
        except PluginError as error:
            self._add_problem(key_path, error.message)
            return None

    def _check_storage_is_not_shared(self, locations: Mapping[str, StorageLocation]) -> None:
        owners: dict[Hashable, list[str]] = defaultdict(list)
        inside: dict[Hashable, list[str]] = defaultdict(list)
        for name, location in locations.items():
            own, around = location.claims()
            near = {other for place in around for other in owners[place]}
            near.update(other for place in own for other in inside[place])
            for place in own:
                owners[place].append(name)
            for place in around:
                inside[place].append(name)
            for other in [each for each in locations if each in near] if near else ():
                key_path: KeyPath = ("tenants", name, "storage")
                if location.shares_database_with(locations[other]):
                    self._add_problem(
                        (*key_path, "connection_string"),
                        f"tenants {other} and {name} share a storage connection; each needs its own database"
                        " or database_schema",
                    )
                elif location.shares_facts_with(locations[other]):
                    self._add_problem(
                        (*key_path, "facts_path"),
                        f"tenants {other} and {name} share a facts_path; each needs its own folder or prefix",
                    )

    def _validated(self, model: type[_Model], values: Any, key_path: KeyPath) -> _Model | None:
        try:
            return model.model_validate(values, context={FOLDER: self.path.parent})
        except ValidationError as error:
            found = problems_of(error, self.document, key_path, model, values)
            for problem in found:
                self._add(problem)
            return None

    def _add_problem(self, key_path: KeyPath, message: str) -> None:
        """Add a problem without showing a value."""
        self._add(self.document.problem(key_path, message))

    def _add(self, problem: ConfigProblem) -> None:
        """Add a problem, unless it only follows from a missing environment variable."""
        if problem not in self._noted and (not problem.path or problem.path not in self._incomplete):
            self._noted.add(problem)
            self.problems.append(problem)


def _leave_out_topics(values: dict[str, Any], ecosystem: Ecosystem | None) -> str | None:
    """Remove topic settings from an ecosystem that has no such key, and log a warning: the tenant works without
    them."""
    plugin = values["plugin_settings"]
    if ecosystem is None or not isinstance(plugin, Mapping) or _TOPICS not in plugin:
        return None
    if _TOPICS in ecosystem.settings_model.model_fields:
        return None
    values["plugin_settings"] = {key: value for key, value in plugin.items() if key != _TOPICS}
    topics = plugin[_TOPICS]
    if isinstance(topics, Mapping) and str(topics.get("enabled", "false")).lower() == "false":
        return None
    return f"the ecosystem {ecosystem.name} has no topic attribution"
