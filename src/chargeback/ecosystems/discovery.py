"""Finds ecosystems: installed ones (entry-point group ``chargeback.ecosystems``) and files in a folder. A plugin names
an object ``ecosystem``; see :mod:`.contract`.

A plugin that cannot be loaded does not prevent the start, unless a tenant is configured for it: the reason is kept for
the error message.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from chargeback.ecosystems.contract import Ecosystem
from chargeback.ecosystems.guarded import guarded
from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.errors import ConfigProblem, ConfigurationError, PluginError
from chargeback.plugins import installed_plugins, loading

logger = logging.getLogger(__name__)

GROUP: Final = "chargeback.ecosystems"
ATTRIBUTE: Final = "ecosystem"
_MODULES: Final = "chargeback_plugins"


@dataclass(frozen=True, slots=True)
class Discovered:
    """Ecosystems by their name in ``ecosystem:``, and why others cannot be used."""

    ecosystems: Mapping[str, Ecosystem] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str, path: str = "ecosystem") -> Ecosystem:
        """Return the ecosystem of that name; ``path`` is the key in the configuration that names it.

        Raises:
            ConfigurationError: there is none, or it cannot be used; the message says why.
        """
        if name in self.ecosystems:
            return self.ecosystems[name]
        if name in self.failures:
            raise ConfigurationError(
                [ConfigProblem(path, f"the ecosystem {name} cannot be used: {self.failures[name]}")]
            )
        known = ", ".join(sorted(self.ecosystems)) or "none"
        raise ConfigurationError([ConfigProblem(path, f"there is no ecosystem {name!r}; there are: {known}")])


def load_ecosystems(plugins_path: str | None = None) -> Discovered:
    """Find all ecosystems.

    In ``plugins_path``, each ``*.py`` file and each package (a folder with ``__init__.py``) is a plugin unless its
    name begins with an underscore.

    Raises:
        ConfigurationError: ``plugins_path`` is not a folder.
    """
    ecosystems: dict[str, Ecosystem] = {}
    failures: dict[str, str] = {}
    origins: dict[str, str] = {}
    for label, origin, load in _candidates(plugins_path):
        try:
            with loading(InvalidValue):
                found = guarded(load())
        except PluginError as error:
            logger.warning("plugin %s (%s) cannot be used: %s", label, origin, error)
            failures[label] = f"{origin}: {error}"
            continue
        if found.name in origins:
            failures[found.name] = f"two plugins have this name: {origins[found.name]} and {origin}"
            ecosystems.pop(found.name, None)
        else:
            ecosystems[found.name], origins[found.name] = found, origin
    return Discovered(ecosystems, {name: why for name, why in failures.items() if name not in ecosystems})


def _candidates(plugins_path: str | None) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield the label, the origin as text, and a function that loads the plugin's object."""
    for entry in installed_plugins(GROUP):
        yield entry.name, f"entry point {entry.value}", entry.load
    if plugins_path is None:
        return
    folder = Path(plugins_path)
    if not folder.is_dir():
        raise ConfigurationError([ConfigProblem("plugins_path", f"there is no folder {plugins_path}")])
    for file in sorted(folder.iterdir()):
        if file.name.startswith(("_", ".")):
            continue
        module = file / "__init__.py" if file.is_dir() else file
        if module.suffix == ".py" and module.is_file():
            yield file.stem, str(file), _loader(file.stem, module)


def _loader(stem: str, file: Path) -> Callable[[], Any]:
    def load() -> Any:
        name = f"{_MODULES}.{stem}"
        package = [str(file.parent)] if file.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=package)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is not a Python module")
        module = importlib.util.module_from_spec(spec)
        # Registered before it is executed, so that it can import its submodules and its classes can be pickled.
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
            return getattr(module, ATTRIBUTE)
        except BaseException:
            sys.modules.pop(name, None)
            raise

    return load
