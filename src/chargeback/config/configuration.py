"""The validated configuration: everything that a process needs to know.

A configuration is sent to other processes (each run is one). Ecosystems may be files in a plugin folder, which a new
process has not imported yet. So a tenant is pickled in the form in which it was written, and is read again by the
receiver.
"""

from __future__ import annotations

import base64
import logging
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from chargeback.allocation.policies import PolicyCatalogue, PolicyVersion, parse_policies
from chargeback.config.access import AccessSettings
from chargeback.config.closing import ClosingProfile
from chargeback.config.emitters import ConfiguredEmitter
from chargeback.config.journal import JournalProfile, read_journal_profile
from chargeback.config.settings import (
    AdditionalBillSettings,
    ApiSettings,
    FeatureSettings,
    LoggingSettings,
    McpSettings,
    TenantSettings,
)
from chargeback.config.shadows import Shadow, read_shadow
from chargeback.config.storage import StorageLocation
from chargeback.disk import explain_denial, private_folder
from chargeback.ecosystems.contract import Ecosystem, FocusEcosystem
from chargeback.ecosystems.discovery import Discovered, load_ecosystems
from chargeback.ecosystems.focus import FocusProfile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.errors import ConfigProblem, ConfigurationError, StorageError
from chargeback.model.currency import parse_month
from chargeback.settings import FOLDER, secrets_in

#: The key of a tenant's own policies.
POLICIES: Final = "allocation_policies"

log = logging.getLogger(__name__)


class TopicStatus(StrEnum):
    """``topic_attribution_status`` of a tenant."""

    DISABLED = "disabled"
    ENABLED = "enabled"
    CONFIG_ERROR = "config_error"


@dataclass(frozen=True, eq=False)
class AdditionalBill:
    """Another bill of a tenant: its ecosystem with the settings for it. ``currency`` is that of its amounts, ``focus``
    says how it is written in FOCUS: with its name as the issuer where nothing else is known."""

    name: str
    ecosystem: Ecosystem
    plugin_settings: PluginSettings = field(repr=False)
    currency: str = "USD"
    rates: Mapping[date, Decimal] = field(default_factory=dict)
    focus: FocusProfile = field(default_factory=FocusProfile)

    def rate(self, day: date) -> Decimal:
        """Return the units of the tenant's currency for one of the bill's.

        Raises:
            LookupError: the month has no rate; the message says so.
        """
        try:
            return self.rates[day.replace(day=1)]
        except KeyError:
            raise LookupError(f"additional_bills: {self.name} has no rate for {day:%Y-%m}") from None


@dataclass(frozen=True)
class Tenant:
    """One validated tenant.

    ``plugin_settings`` is an instance of ``ecosystem.settings_model``. If ``topic_status`` is ``config_error``,
    ``topic_error`` says why the topic overlay cannot work; everything else of the tenant works. Relative paths start at
    ``folder``, the configuration file's folder.
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
    additional_bills: tuple[AdditionalBill, ...] = ()
    shipped: tuple[PolicyVersion, ...] = ()

    @cached_property
    def focus(self) -> FocusProfile:
        """How its bill is written in FOCUS: as its ecosystem says, with its own changes."""
        own = _profile_of(self.ecosystem).changed(self.settings.focus)
        return own.model_copy(update={"bills": {bill.name: bill.focus for bill in self.additional_bills}})

    @cached_property
    def journal(self) -> JournalProfile:
        """Return how its journals are made, with the templates as they were when first read."""
        return read_journal_profile(self.settings.journal, self.folder)

    @cached_property
    def shadows(self) -> tuple[Shadow, ...]:
        """The policies that are calculated in addition to those in force, as their files were at the first access.

        Raises:
            ConfigurationError: a file cannot be read, or its policies are not valid.
        """
        found = tuple(read_shadow(name, each, self.folder) for name, each in self.settings.shadow_policies.items())
        for each in found:
            self.catalogue_of(each.policies)
        return found

    def catalogue_of(self, policies: object) -> PolicyCatalogue:
        """Return the tenant's policies, if ``allocation_policies`` were these.

        Raises:
            ConfigurationError: they are not valid; every mistake is at its place in them.
        """
        if not isinstance(policies, Mapping | list):
            message = "should be a mapping of product types to policies, or a list of versions of them"
            raise ConfigurationError([ConfigProblem("", message)])
        parse_policies(policies, POLICIES)
        try:
            settings = type(self.plugin_settings).model_validate(
                {**self.plugin_settings.model_dump(), POLICIES: policies}
            )
        except ValidationError as error:  # such as a measure that the ecosystem does not have
            raise ConfigurationError([ConfigProblem("", each["msg"]) for each in error.errors()]) from None
        return self._catalogue(settings)

    @property
    def catalogue(self) -> PolicyCatalogue:
        """Its policies: its own, and those of its ecosystem.

        Raises:
            PluginError: the ecosystem's plugin fails.
        """
        return self._catalogue(self.plugin_settings)

    @property
    def measures(self) -> frozenset[str]:
        """What its policies look at, and those of its additional bills.

        Raises:
            PluginError: an ecosystem's plugin fails.
        """
        of_bills = [each.ecosystem.tenant_catalogue(each.plugin_settings).measures for each in self.additional_bills]
        return self.catalogue.measures.union(*of_bills)

    def _catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        found = self.ecosystem.tenant_catalogue(settings)
        own = parse_policies(settings.allocation_policies, POLICIES)
        return found.with_shipped(self.shipped, self.ecosystem.catalogue.policies, own)

    @cached_property
    def closing(self) -> ClosingProfile:
        """How its months are closed."""
        its = self.settings
        key = its.closing.signing_key
        return ClosingProfile(
            tuple(its.closing.by) or (its.journal.by,),
            its.closing.approval == "two_people",
            its.closing.warn_percent,
            its.cutoff_days,
            its.lookback_days,
            its.retention_days,
            None if key is None else base64.b64decode(key.get_secret_value()),
        )

    def secrets(self) -> frozenset[str]:
        """Its secrets, which logs must mask."""
        found: set[str] = set(secrets_in(self.plugin_settings))
        found.update(self.storage.secrets(), secrets_in(self.settings.notifications))
        found.update(*(secrets_in(each.params) for each in self.emitters))
        found.update(*(secrets_in(each.plugin_settings) for each in self.additional_bills))
        return frozenset(found - {""})

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
    bills = tuple(
        additional_bill(
            each,
            settings.currency,
            (other := discover(plugins_path).ecosystems[each.ecosystem]),
            other.settings_model.model_validate(each.plugin_settings, context=context),
        )
        for each in settings.additional_bills
    )
    return Tenant(name, settings, storage, ecosystem, plugin_settings, plugins_path, *rest, bills)


def additional_bill(
    settings: AdditionalBillSettings, currency: str, ecosystem: Ecosystem, plugin_settings: PluginSettings
) -> AdditionalBill:
    """Return an additional bill of a tenant with this ``currency``.

    Raises:
        ValueError: a service of its ``focus`` would have two categories or subcategories.
    """
    rates = {parse_month(month): rate for month, rate in settings.rates.items()}
    focus = _profile_of(ecosystem).changed(settings.focus)
    focus = focus.model_copy(update={"issuer": focus.issuer or settings.name})
    return AdditionalBill(settings.name, ecosystem, plugin_settings, settings.currency or currency, rates, focus)


def _profile_of(ecosystem: Ecosystem) -> FocusProfile:
    return ecosystem.focus_profile if isinstance(ecosystem, FocusEcosystem) else FocusProfile()


@cache
def discover(plugins_path: Path | None) -> Discovered:
    """Return all available ecosystems; they are searched once per process."""
    return load_ecosystems(None if plugins_path is None else str(plugins_path))


@dataclass(frozen=True)
class Configuration:
    """The whole configuration. ``tenants`` maps their names, in the order of the file."""

    path: Path
    logging: LoggingSettings
    features: FeatureSettings
    api: ApiSettings
    access: AccessSettings
    plugins_path: Path | None
    tenants: Mapping[str, Tenant]
    mcp: McpSettings = field(default_factory=McpSettings)

    def secrets(self) -> frozenset[str]:
        """All configured secrets, which logs must mask."""
        of_access = frozenset(secrets_in(self.access)) - {""}
        return of_access.union(*(tenant.secrets() for tenant in self.tenants.values()))


def state_dir() -> Path:
    """Return the folder of small files that this user's processes on this host share, such as rate limits.

    ``CHARGEBACK_STATE_DIR`` moves it. The default is in the user's cache folder, which all sessions and jobs of the
    user share, else in the session's runtime folder, else in the folder for temporary files. Only this user may have
    access to it. If no such folder can be used, a new one is created, which no other process shares.

    Raises:
        StorageError: the folder that ``CHARGEBACK_STATE_DIR`` names does not exist and cannot be created.
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
    """Yield the candidates for the folder. A folder inside another user's folder is not trusted."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    # A home may be on the network, and the clocks of two hosts differ: each host has its own folder.
    below = {cache: f"chargeback/{socket.gethostname()}", os.environ.get("XDG_RUNTIME_DIR", ""): "chargeback"}
    for base, name in below.items():
        if Path(base).is_absolute() and _owner(Path(base)) == os.getuid():
            yield Path(base) / name
    yield Path(tempfile.gettempdir()) / f"chargeback-{os.getuid()}"


def _owner(path: Path) -> int | None:
    """Return the owner of a folder or, if it does not exist, of the nearest existing folder above it."""
    for folder in (path, path.parent):
        with suppress(OSError):
            return folder.stat().st_uid
    return None
