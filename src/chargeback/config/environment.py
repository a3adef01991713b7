"""``${NAME}`` in the configuration: from the environment, or from the ``.env`` file beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)(?P<closed>\})?")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)

#: Stands where a variable is missing.
PLACEHOLDER = "unset"


def read_environment(folder: Path) -> dict[str, str]:
    """The variables that a configuration in ``folder`` may name: ``.env`` there, and the environment over it.

    The text of ``.env`` is taken as it is; a ``$`` in it means nothing.
    """
    beside = dotenv_values(folder / ".env", interpolate=False)
    return {name: value for name, value in beside.items() if value is not None} | dict(os.environ)


@dataclass(frozen=True, slots=True)
class Interpolated:
    """A text after interpolation, the variables it took (name and value), and what was wrong with it."""

    text: str
    taken: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


def interpolate(text: str, environment: Mapping[str, str]) -> Interpolated:
    """``text`` with ``${NAME}`` and ``${NAME:-default}`` replaced; ``$${`` is a plain ``${``.

    A variable that is missing is a problem, and a placeholder in the text, so that nothing else seems missing too.
    As in a shell, the default also stands in for a variable that is set but empty. Values are not looked into again.

    >>> interpolate("${USER_ID:-nobody}@$${here}", {}).text
    'nobody@${here}'
    """
    taken: list[tuple[str, str]] = []
    problems: list[str] = []

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        inside = _INSIDE.fullmatch(match["inside"])
        if match["closed"] is None or inside is None:
            problems.append("`${` needs a variable and a `}`: ${NAME} or ${NAME:-default}; write $${ for a plain ${")
            return ""
        name, default = inside["name"], inside["default"]
        value = environment.get(name, "")
        if value or (default is None and name in environment):
            taken.append((name, value))
            return value
        if default is None:
            problems.append(f"required environment variable {name} is not set")
            return PLACEHOLDER
        return default

    return Interpolated(_REFERENCE.sub(replace, text), tuple(taken), tuple(problems))
