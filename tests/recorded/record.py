"""Send every request to a copy of the storages, and store what identifies each response."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import httpx
import pyarrow.parquet as pq
import pypdfium2

from chargeback.config import load_configuration
from chargeback.errors import StorageError
from chargeback.store.tenant import open_store
from tests.cli.conftest import called
from tests.recorded.clock import NOW, stopped_at
from tests.recorded.commands import WRITTEN, commands
from tests.recorded.deployment import alone, opened
from tests.recorded.prepare import QUESTIONS, TOKENS
from tests.recorded.questions import CALLERS, Question

#: The entry of the whole OpenAPI document.
DOCUMENT: Final = "OpenAPI document"
#: The prefix of the copies' folder names, which are equally long, because messages may be cut and tables are aligned.
_PREFIX: Final = "chargeback-recorded-"
#: Patterns that differ in every response, and their placeholders.
NORMALISED: Final = (
    # The revision of sums, which depends on the times at which files were written.
    (re.compile(rb'"revision":"[0-9a-f]{32}"'), b'"revision":"REVISION"'),
    # The id under which an unexpected error is logged.
    (re.compile(rb"\b[0-9a-f]{12}\b(?=[^}]*internal-error)|(?<=internal-error)([^}]*)\b[0-9a-f]{12}\b"), rb"\1NUMBER"),
)
_HEADERS: Final = re.compile(
    r"allow|cache-control|content-(?:disposition|encoding|type)|link|location|retry-after|vary|www-authenticate|x-.*"
)
_HEAD_CHARACTERS: Final = 300
_ETAG: Final = "$ETAG"

Entry = dict[str, Any]


@dataclass(frozen=True)
class Recorder:
    """Records the responses to requests whose names contain ``only``; ``keep`` gets each complete response."""

    only: str = ""
    keep: Callable[[str, bytes], None] | None = None

    def record(self, storage: Path) -> dict[str, Entry]:
        """Return the identifying entry of each response by the name of its request."""
        found: dict[str, Entry] = {}
        counts: Counter[str] = Counter()
        with _copied(storage) as folder, alone(folder), stopped_at(NOW):
            for name, entry, content in self._all(folder):
                counts[name] += 1
                unique = name if counts[name] == 1 else f"{name} (no. {counts[name]})"
                found[unique] = entry
                if self.keep is not None:
                    self.keep(unique, content)
        return found

    def _all(self, folder: Path) -> Iterator[tuple[str, Entry, bytes]]:
        stored, tokens = (json.loads((folder / name).read_text(encoding="utf-8")) for name in (QUESTIONS, TOKENS))
        questions = [each for each in map(Question.from_json, stored) if self.only in each.name]
        with opened(folder, "open") as everyone, opened(folder, "guarded") as guarded:
            document = everyone.get("/openapi.json")
            yield DOCUMENT, document.json(), document.content
            for question in questions:
                response = ask(guarded if question.caller else everyone, question, tokens)
                yield question.name, entry_of(response, folder), response.content
        for words in commands(folder):
            name = " ".join(["$ chargeback", *words])
            if self.only in name:
                for about, content, more in _called(folder, words):
                    yield f"{name} → {about}", identified(content, about, folder) | more, content


@contextmanager
def _copied(storage: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        copy = Path(shutil.copytree(storage, folder, dirs_exist_ok=True))
        # Storages prepared by an earlier version are migrated; one of them cannot be opened, on purpose.
        for tenant in load_configuration(copy / "open.yaml").tenants.values():
            with suppress(StorageError), closing(open_store(tenant)) as store:
                store.control.upgrade()
        yield copy


def ask(client: httpx.Client, question: Question, tokens: Mapping[str, str]) -> httpx.Response:
    """Return the response to a request."""
    headers = dict(CALLERS[question.caller])
    if (token := headers.get("Authorization", "").partition("$")[2]) in tokens:
        headers["Authorization"] = f"Bearer {tokens[token]}"
    for name, value in question.headers.items():
        if value.startswith(_ETAG):
            path = value.removeprefix(_ETAG).strip() or question.path
            value = client.get(path, headers=headers).headers.get("etag", '"none"')  # noqa: PLW2901
        headers[name] = value
    content = None if question.body is None else json.dumps(question.body).encode()
    if content is not None:
        headers["Content-Type"] = "application/json"
    return client.request(question.method, question.path, headers=headers, content=content)


def entry_of(response: httpx.Response, folder: Path) -> Entry:
    """Return the identifying entry of a response; ``folder`` contains the storages of the service."""
    headers = {name: value for name, value in sorted(response.headers.items()) if _HEADERS.fullmatch(name)}
    headers |= {"etag": "there"} if "etag" in response.headers else {}
    if response.request.method == "HEAD" and "content-length" in response.headers:
        headers["content-length"] = response.headers["content-length"]
    content = response.content
    if response.request.url.path == "/metrics":
        content = b"".join(line for line in content.splitlines(keepends=True) if line.startswith(b"# TYPE"))
    kind = response.headers.get("content-type", "").partition(";")[0].rpartition(".")[2].rpartition("/")[2]
    return {"status": response.status_code, "headers": headers} | identified(content, f".{kind}", folder)


def identified(content: bytes, name: str, folder: Path) -> Entry:
    """Return the entry of some bytes: their digest without the name of ``folder``, or for a PDF file that of its texts.
    ``name`` ends with the type of the file."""
    if not content:
        return {"bytes": 0}
    if name.endswith(".pdf"):
        return _pdf(content)
    if name.endswith("parquet"):
        return _parquet(content)
    content = content.replace(bytes(folder), b"FOLDER")
    for pattern, instead in NORMALISED:
        content = pattern.sub(instead, content)
    text = content[: 4 * _HEAD_CHARACTERS].decode("utf-8", "replace")
    return {"bytes": len(content), "sha256": sha256(content).hexdigest(), "head": text[:_HEAD_CHARACTERS]}


def _pdf(content: bytes) -> Entry:
    """Return the number of pages and the digest of the text."""
    document = pypdfium2.PdfDocument(content)
    text = "\f".join(page.get_textpage().get_text_range() for page in document)
    return {"pages": len(document), "text": sha256(text.encode()).hexdigest(), "head": text[:_HEAD_CHARACTERS]}


def _parquet(content: bytes) -> Entry:
    """Return the columns, and the digests of all values and of the file."""
    table = pq.read_table(BytesIO(content))
    rows = repr(table.to_pylist()).encode()
    columns = ", ".join(f"{field.name} {field.type}" for field in table.schema)
    return {
        "rows": table.num_rows,
        "columns": columns,
        "values": sha256(rows).hexdigest(),
        "sha256": sha256(content).hexdigest(),
        "head": rows[:_HEAD_CHARACTERS].decode(),
    }


def _called(folder: Path, words: list[str]) -> Iterator[tuple[str, bytes, Entry]]:
    """Call a command; yield its output and the written files: name, content, and the exit code."""
    written = folder / WRITTEN
    written.mkdir()
    with patch.object(sys.modules["__main__"], "__package__", ""):  # help texts contain the program's name
        said = called(folder, *words, CHARGEBACK_CONFIG="open.yaml")
    yield "output", said.stdout.encode(), {"exit": said.returncode}
    yield "errors", said.stderr.encode(), {}
    for file in sorted(each for each in written.rglob("*") if each.is_file()):
        yield str(file.relative_to(written)), file.read_bytes(), {}
    shutil.rmtree(written)
