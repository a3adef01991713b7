"""``${NAME}`` in the configuration: from the environment, or from the ``.env`` file in its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

from chargeback.errors import ConfigProblem, ConfigurationError

_OUTSIDE = re.compile(r"\$\$\{|\$\{")
_INSIDE = re.compile(r"\$\$\{|\$\{|\}")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(:-|\})")

_MALFORMED = "`${` needs a variable and a `}`: ${NAME} or ${NAME:-default}; write $${ for a literal ${"
_MAX_DEPTH = 20

#: Replaces a missing variable.
PLACEHOLDER = "unset"


def read_environment(folder: Path) -> dict[str, str]:
    """Return the variables for a configuration in ``folder``: those of its ``.env``, overridden by the environment.

    Values in ``.env`` are used literally; a ``$`` in them has no meaning.

    Raises:
        ConfigurationError: ``.env`` cannot be read.
    """
    try:
        from_file = dotenv_values(folder / ".env", interpolate=False)
    except UnicodeDecodeError:
        raise ConfigurationError([ConfigProblem("", f"{folder / '.env'} is not UTF-8 text")]) from None
    except OSError as error:
        raise ConfigurationError([ConfigProblem("", f"{folder / '.env'} cannot be read: {error.strerror}")]) from None
    return {name: value for name, value in from_file.items() if value is not None} | dict(os.environ)


@dataclass(frozen=True, slots=True)
class Interpolated:
    """A text after interpolation, the variables used (name and value), and the problems."""

    text: str
    taken: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


def interpolate(text: str, environment: Mapping[str, str]) -> Interpolated:
    """Replace ``${NAME}`` and ``${NAME:-default}`` in ``text``; ``$${`` gives a literal ``${``.

    A default may contain references. A missing variable is a problem; a placeholder replaces it, so that no other error
    follows from it. As in a shell, the default also replaces a variable that is set but empty. Values are not expanded
    again.

    >>> interpolate("${USER_ID:-nobody}@$${here}", {}).text
    'nobody@${here}'
    >>> interpolate("${HOST:-${NAME:-db}.example.com}", {"NAME": "pg"}).text
    'pg.example.com'
    """
    expansion = _Expansion(text, environment)
    expanded, _ = expansion.expand(0, depth=0, used=True)
    return Interpolated(expanded, tuple(expansion.taken), tuple(expansion.problems))


class _Expansion:
    """The expansion of one text; ``used`` is false inside a default that is not needed."""

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self._text = text
        self._environment = environment
        self.taken: list[tuple[str, str]] = []
        self.problems: list[str] = []

    def expand(self, at: int, *, depth: int, used: bool) -> tuple[str, int]:
        """Return the text from ``at``, up to the ``}`` that ends a default where ``depth`` is not zero, and its end."""
        parts: list[str] = []
        plain = 0  # braces of escaped references, which belong to the text
        while match := (_INSIDE if depth else _OUTSIDE).search(self._text, at):
            parts.append(self._text[at : match.start()])
            at = match.end()
            if match[0] == "${":
                value, at = self._reference(at, depth=depth + 1, used=used)
                parts.append(value)
            elif match[0] == "$${":
                plain += 1
                parts.append("${")
            elif plain:
                plain -= 1
                parts.append("}")
            else:
                return "".join(parts), at
        if depth:
            self.problems.append(_MALFORMED)
        else:
            parts.append(self._text[at:])
        return "".join(parts), len(self._text)

    def _reference(self, at: int, *, depth: int, used: bool) -> tuple[str, int]:
        """Return the value of the reference whose name begins at ``at``, and where it ends."""
        match = _NAME.match(self._text, at)
        if match is None or depth > _MAX_DEPTH:
            self.problems.append(
                _MALFORMED if match is None else f"defaults are nested deeper than {_MAX_DEPTH} levels"
            )
            end = self._text.find("}", at)
            return "", len(self._text) if end < 0 or match else end + 1
        name, at = match[1], match.end()
        value = self._environment.get(name, "")
        has_default = match[2] == ":-"
        if value or (not has_default and name in self._environment):
            if used:
                self.taken.append((name, value))
        elif not has_default:
            if used:
                self.problems.append(f"required environment variable {name} is not set")
            value = PLACEHOLDER
        if not has_default:
            return value, at
        default, at = self.expand(at, depth=depth, used=used and not value)
        return value or default, at
