"""The emitters of a tenant, as configured in ``plugin_settings.emitters``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chargeback.config.document import Document, KeyPath
from chargeback.config.problems import problems_of, suggestion
from chargeback.config.settings import TenantSettings
from chargeback.ecosystems.settings import EmitterSettings
from chargeback.emitters.contract import HOURLY, EmitterContext, EmitterParams, EmitterType
from chargeback.emitters.discovery import discover_emitters
from chargeback.errors import ChargebackError, ConfigProblem
from chargeback.settings import FOLDER


@dataclass(frozen=True)
class ConfiguredEmitter:
    """One emitter of one tenant. ``params`` is an instance of its type's ``params_model``, with absolute paths."""

    settings: EmitterSettings
    params: EmitterParams = field(repr=False)

    @property
    def name(self) -> str:
        """Its name, unique within the tenant."""
        return self.settings.name

    @property
    def kind(self) -> EmitterType:
        """The emitter's type."""
        return discover_emitters().types[self.settings.type]

    def context(self, tenant_name: str, tenant: TenantSettings) -> EmitterContext:
        """The part of the tenant's settings that the emitter sees."""
        return EmitterContext(
            name=self.name,
            tenant_name=tenant_name,
            tenant_id=tenant.tenant_id,
            ecosystem=tenant.ecosystem,
            currency=tenant.currency,
            aggregation=self.settings.aggregation,
        )


class EmitterReader:
    """Reads the emitters of one tenant and collects their problems.

    The ecosystem's settings model reports problems of the keys that all emitters share.
    """

    def __init__(self, document: Document, folder: Path) -> None:
        self._document = document
        self._folder = folder
        self.problems: list[ConfigProblem] = []

    def read(self, key_path: KeyPath, plugin_settings: Any) -> tuple[ConfiguredEmitter, ...]:
        """Return the emitters at ``key_path`` of a tenant with these ``plugin_settings`` (as written)."""
        written = plugin_settings.get("emitters") if isinstance(plugin_settings, Mapping) else None
        if not isinstance(written, list):
            return ()
        hourly = plugin_settings.get("chargeback_granularity") == HOURLY
        found: list[ConfiguredEmitter] = []
        for position, value in enumerate(written):
            try:
                settings = EmitterSettings.model_validate(value)
            except ValidationError:
                continue
            here: KeyPath = (*key_path, position)
            if settings.name in {each.name for each in found}:
                self._add_problem((*here, "name"), "another emitter of this tenant has this name; use unique names")
            found.extend(self._configured(here, settings, hourly=hourly))
        return tuple(found)

    def _configured(self, key_path: KeyPath, settings: EmitterSettings, *, hourly: bool) -> Iterator[ConfiguredEmitter]:
        discovered = discover_emitters()
        kind = discovered.types.get(settings.type)
        if kind is None:
            if failure := discovered.failures.get(settings.type):
                self._add_problem((*key_path, "type"), f"this emitter cannot be used: {failure}")
            else:
                known = sorted(discovered.types)
                hint = suggestion(settings.type, known) or f"; there are {', '.join(known)}"
                self._add_problem((*key_path, "type"), f"there is no such emitter{hint}")
            return
        if settings.aggregation not in kind.aggregations:
            listed = ", ".join(sorted(kind.aggregations))
            self._add_problem((*key_path, "aggregation"), f"this emitter does not support it; supported: {listed}")
        elif settings.aggregation == HOURLY and not hourly:
            self._add_problem(
                (*key_path, "aggregation"),
                "finer than the data: rows are hourly only if chargeback_granularity is hourly",
            )
        try:
            params = kind.params_model.model_validate(settings.params, context={FOLDER: self._folder})
        except ValidationError as error:
            at = (*key_path, "params")
            self.problems.extend(problems_of(error, self._document, at, kind.params_model, settings.params))
            return
        yield ConfiguredEmitter(settings, params)

    def check_distinct_destinations(
        self, tenants: Mapping[str, tuple[TenantSettings, tuple[ConfiguredEmitter, ...]]]
    ) -> None:
        """Report emitters, of any tenant, that write to the same destination."""
        taken: dict[str, str] = {}
        for name, (tenant, emitters) in tenants.items():
            for position, each in enumerate(emitters):
                whose = f"{each.name} of tenant {name}"
                for destination in self._destinations(each, name, tenant, position):
                    if destination in taken:
                        self._add_problem(
                            ("tenants", name, "plugin_settings", "emitters", position),
                            f"{taken[destination]} and {whose} would write to the same place",
                        )
                    taken.setdefault(destination, whose)

    def _destinations(
        self, emitter: ConfiguredEmitter, name: str, tenant: TenantSettings, position: int
    ) -> tuple[str, ...]:
        try:
            return emitter.kind.destinations(emitter.context(name, tenant), emitter.params)
        except ChargebackError as error:
            self._add_problem(("tenants", name, "plugin_settings", "emitters", position), error.message)
            return ()

    def _add_problem(self, key_path: KeyPath, message: str) -> None:
        self.problems.append(self._document.problem(key_path, message))
