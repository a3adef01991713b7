"""Compare two recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def compare(before: Path, after: Path) -> Iterator[str]:
    """Yield a text about each response that differs or is in only one of the recordings."""
    former, later = (json.loads(file.read_text(encoding="utf-8")) for file in (before, after))
    for name in dict.fromkeys([*former, *later]):
        if former.get(name) != later.get(name):
            yield "\n".join([name, *_differences(former.get(name), later.get(name))])


def _differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield lines about the differing parts."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            if before.get(key) != after.get(key):
                yield from _differences(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
        if "head" in before and before["head"] == after.get("head"):
            yield f"  both begin: {before['head'][:200]}"
        return
    yield f"  {path or 'answer'}: {_shown(before)}"
    yield f"  {' ' * len(path or 'answer')}→ {_shown(after)}"


def _shown(value: Any) -> str:
    text = "absent" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"
