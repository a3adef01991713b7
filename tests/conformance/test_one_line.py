"""The official validator is patched in exactly one line, or not at all."""

from __future__ import annotations

import ast

import pytest
from conformance.one_line import EQUAL, LINE, adapted

SOURCE = f"def sql(ignore_keys):\n    return (\n        '['\n        {LINE}\n        + ']'\n    )\n"


def test_one_line_changes() -> None:
    """The patched code is valid Python 3.11 with the same behaviour; code that is already patched stays the same."""
    result = adapted(SOURCE)
    assert [before for before in SOURCE.splitlines() if before not in result.splitlines()] == [f"        {LINE}"]
    names: dict[str, object] = {}
    exec(compile(ast.parse(result), "sql", "exec"), names)
    assert names["sql"](['a"b', "c"]) == """['a""b', 'c']"""  # type: ignore[operator]
    assert adapted(result) == result


@pytest.mark.parametrize("source", [SOURCE * 2, "nothing of it\n", SOURCE + adapted(SOURCE)[:0] + LINE + "\n"])
def test_anything_else_is_refused(source: str) -> None:
    """Source that does not contain exactly one such line is rejected."""
    with pytest.raises(ValueError, match="exactly one line"):
        adapted(source)
    assert EQUAL not in source
