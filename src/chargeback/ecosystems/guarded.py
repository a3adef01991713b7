"""Wrappers through which the service calls every ecosystem: all calls are guarded, all results checked.

An undeclared exception of a plugin, and a result that the contract does not allow, become a
:class:`~chargeback.errors.PluginError` that names the plugin, the method, the day, the record and the field. In a bill,
it is the error of the day concerned. Discovery returns only guarded ecosystems.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.contract import (
    Capabilities,
    Ecosystem,
    Finding,
    FocusEcosystem,
    GatheredDay,
    Gatherer,
    MeasuredUsage,
    TenantContext,
    UsageResolver,
)
from chargeback.ecosystems.focus import FocusProfile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.ecosystems.validation.gathered import (
    check_days,
    check_finding,
    check_gatherer,
    check_listing,
    check_plugin,
    check_topics,
    check_usage,
)
from chargeback.ecosystems.validation.values import InvalidValue, expect
from chargeback.errors import PluginError
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.model.topics import TopicPlan
from chargeback.plugins import calling, log
from chargeback.settings import secrets_in

_T = TypeVar("_T")


class GuardedEcosystem:
    """An ecosystem that keeps the contract, or raises an error that says where it does not. Implements
    :class:`.contract.Ecosystem`.

    Raises:
        InvalidValue: the plugin lacks a required member.
    """

    def __init__(self, plugin: Any) -> None:
        check_plugin(plugin)
        self._plugin: Any = plugin
        self.name: str = plugin.name
        self.capabilities: Capabilities = plugin.capabilities
        self.settings_model: type[PluginSettings] = plugin.settings_model
        self.catalogue: PolicyCatalogue = plugin.catalogue
        self.focus_profile = plugin.focus_profile if isinstance(plugin, FocusEcosystem) else FocusProfile()
        self.named_measures = frozenset(plugin.named_measures if isinstance(plugin, UsageResolver) else ())

    def tenant_catalogue(self, settings: PluginSettings) -> PolicyCatalogue:
        """Return the policies with the changes of this tenant's settings."""
        with self._calling("tenant_catalogue", settings):
            found = self._plugin.tenant_catalogue(settings)
            return _checked(self._label, "tenant_catalogue", lambda: expect(PolicyCatalogue, found, "the answer"))

    def resolve_usage(self, day: date, usage: pa.Table, inventory: Inventory) -> pa.Table:
        """Return stored usage with identities as subjects; unchanged if the plugin resolves nothing. Implements
        :class:`.contract.UsageResolver`."""
        if not isinstance(self._plugin, UsageResolver):
            return usage
        method = f"resolve_usage of {day}"
        with calling(self._label, method):
            found = self._plugin.resolve_usage(day, usage, inventory)
            return _checked(self._label, method, lambda: check_usage(MeasuredUsage(found), day).table)

    @contextmanager
    def open(self, context: TenantContext, settings: PluginSettings) -> Iterator[Gatherer]:
        """Start work for one tenant. Exceptions inside the ``with`` always reach the caller, and a plugin that fails to
        close does not undo the work."""
        secrets = frozenset(secrets_in(settings))
        with calling(self._label, "open", stop=context.stop, secrets=secrets):
            manager = self._plugin.open(context, settings)
            _checked(self._label, "open", lambda: _check_manager(manager))
            gatherer = manager.__enter__()
            _checked(self._label, "open", lambda: check_gatherer(gatherer))
        failure: BaseException | None = None
        try:
            yield GuardedGatherer(self._label, gatherer, context, secrets)
        except BaseException as error:
            failure = error
            raise
        finally:
            try:
                with calling(self._label, "closing", secrets=secrets):
                    manager.__exit__(type(failure) if failure else None, failure, None)
            except Exception as error:  # noqa: BLE001 - the edge of a plugin
                if error is not failure:
                    log.warning("%s", error)

    @property
    def _label(self) -> str:
        return f"plugin {self.name}"

    def _calling(self, method: str, settings: PluginSettings) -> Any:
        return calling(self._label, method, secrets=frozenset(secrets_in(settings)))


class GuardedTopicEcosystem(GuardedEcosystem):
    """A guarded ecosystem with topics. Implements :class:`.contract.TopicEcosystem`."""

    def topic_settings(self, settings: PluginSettings) -> Any:
        """Return the settings of the overlay.

        Raises:
            ConfigurationError: they cannot be used.
        """
        with self._calling("topic_settings", settings):
            return self._plugin.topic_settings(settings)

    def topic_plan(self, settings: PluginSettings) -> TopicPlan | None:
        """Return the overlay's plan for this tenant."""
        with self._calling("topic_plan", settings):
            found: TopicPlan | None = self._plugin.topic_plan(settings)
            if found is not None:
                _checked(self._label, "topic_plan", lambda: expect(TopicPlan, found, "the answer"))
            return found


class GuardedGatherer:
    """A gatherer whose results are all checked. Implements :class:`.contract.Gatherer`."""

    def __init__(self, label: str, gatherer: Any, context: TenantContext, secrets: Collection[str]) -> None:
        self._label = label
        self._gatherer: Any = gatherer
        self._context = context
        self._secrets = secrets

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        """Yield every day of the range once, each with lines that can be calculated or with its error.

        Raises:
            SourceError: no bill could be fetched.
            PluginError: the plugin failed, or returned a bill of a day outside the range; every other day has been
                yielded by then.
        """
        method = f"billing of {days.start} to {days.end}"
        answers = self._each(method, lambda: self._gatherer.billing(days))
        try:
            yield from check_days(answers, days, self._context.currency, f"{self._label}: billing")
        except InvalidValue as mistake:
            raise PluginError(f"{self._label}: {method}: {mistake}") from None

    def inventory(self) -> ListedInventory:
        """Return the listings."""
        return self._ask("inventory", lambda: check_listing(self._gatherer.inventory()))

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """Return the measurements of a day."""
        return self._ask(f"usage of {day}", lambda: check_usage(self._gatherer.usage(day, inventory), day))

    def topics(self, day: date) -> MeasuredUsage:
        """Return the topic measurements of a day."""
        return self._ask(f"topics of {day}", lambda: check_topics(self._gatherer.topics(day), day))

    def check(self) -> Iterator[Finding]:
        """Yield one finding each; if the check itself fails, the last finding says so."""
        try:
            for answer in self._each("check", self._gatherer.check):
                yield _checked(self._label, "check", partial(check_finding, answer))
        except PluginError as error:
            yield Finding(self._label, ok=False, detail=str(error))

    def _calling(self, method: str) -> Any:
        return calling(self._label, method, stop=self._context.stop, secrets=self._secrets)

    def _ask(self, method: str, call: Callable[[], _T]) -> _T:
        with self._calling(method):
            return _checked(self._label, method, call)

    def _each(self, method: str, call: Callable[[], Any]) -> Iterator[object]:
        """Yield each result of a method that yields several; the iteration is guarded, too."""
        with self._calling(method):
            answers = call()
            if isinstance(answers, str | bytes) or not hasattr(answers, "__iter__"):
                raise PluginError(f"{self._label}: {method} should return an iterator, not {type(answers).__name__}")
            iterator = iter(answers)
        while True:
            with self._calling(method):
                try:
                    answer = next(iterator)
                except StopIteration:
                    return
            yield answer


def guarded(plugin: Any) -> Ecosystem:
    """Return the plugin, guarded.

    Raises:
        InvalidValue: it lacks a required member.
    """
    check_plugin(plugin)
    has_topics = plugin.capabilities.topic_overlay
    return GuardedTopicEcosystem(plugin) if has_topics else GuardedEcosystem(plugin)


def _checked(label: str, method: str, check: Callable[[], _T]) -> _T:
    try:
        return check()
    except InvalidValue as mistake:
        raise PluginError(f"{label}: {method}: {mistake}") from None


def _check_manager(manager: Any) -> None:
    if not (hasattr(manager, "__enter__") and hasattr(manager, "__exit__")):
        raise InvalidValue(f"it should return a context manager, not {type(manager).__name__}")
