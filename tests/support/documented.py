"""Requests and responses on a page of the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_QUESTION = re.compile(
    r"```console\n\$ curl -s \"http://127\.0\.0\.1:8080(?P<path>[^\"]+)\"\n```\n+```json\n(?P<answer>.*?)```", re.DOTALL
)


def questions(page: Path) -> Iterator[tuple[str, Any]]:
    """Yield the paths that a page requests with curl, each with the part of the response shown below it."""
    for found in _QUESTION.finditer(page.read_text(encoding="utf-8")):
        yield found["path"], json.loads(found["answer"])


def shown_of(answer: Any, shown: Any) -> Any:
    """Return the parts of a response that the page shows; they equal ``shown`` if the page is right."""
    if isinstance(shown, dict) and isinstance(answer, dict):
        return {name: shown_of(answer.get(name), value) for name, value in shown.items()}
    if isinstance(shown, list) and isinstance(answer, list):
        return [shown_of(part, value) for part, value in zip(answer, shown, strict=False)] + answer[len(shown) :]
    return answer
