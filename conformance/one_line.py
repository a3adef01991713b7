"""Makes the official validator run on Python 3.11: one line of it has quotes inside an f-string, as 3.12 allows them.

Run in the environment of the validator, once. Everything else remains as it was published.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

FILE: Final = Path("config_objects") / "focus_to_duckdb_converter.py"
LINE: Final = """+ ", ".join(f"'{k.replace('\\"', '\\"\\"')}'" for k in ignore_keys)"""
EQUAL: Final = """+ ", ".join("'" + k.replace('"', '""') + "'" for k in ignore_keys)"""


def adapted(source: str) -> str:
    """Return the module with that line changed; as it is where this is done already.

    Raises:
        ValueError: the line is not there exactly once, or it is not the only one that changes.
    """
    if EQUAL in source and LINE not in source:
        return source
    result = source.replace(LINE, EQUAL)
    lines = zip(source.splitlines(), result.splitlines(), strict=True)
    if sum(before != after for before, after in lines) != 1:
        raise ValueError(f"{FILE} is not as it was published: exactly one line should change")
    return result


def main() -> None:
    """Change the installed validator."""
    found = find_spec("focus_validator")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("focus_validator is not installed here")
    module = Path(found.origin).parent / FILE
    result = adapted(module.read_text(encoding="utf-8"))
    compile(result, str(module), "exec")
    module.write_text(result, encoding="utf-8")


if __name__ == "__main__":
    main()
