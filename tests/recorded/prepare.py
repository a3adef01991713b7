"""Prepare the storages of a recording and its requests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, Final

import httpx

from chargeback.config import load_configuration
from chargeback.store.tenant import open_store
from tests.recorded import callers, changes, reads
from tests.recorded.clock import NOW, stopped_at
from tests.recorded.commands import write_files
from tests.recorded.content import add_content
from tests.recorded.deployment import alone, opened, write_configurations
from tests.recorded.organisations import calculate_all
from tests.recorded.questions import Known, Question

#: The files of requests and of access tokens, below the storages.
QUESTIONS: Final = "questions.json"
TOKENS: Final = "tokens.json"
_SCOPED: Final = ("identity", "team", "cluster", "unit")
_OTHERS: Final = ("chain", "token", "admin", "reader", "exporter", "stranger", "anonymous", "ended", "revoked")


def prepare(folder: Path) -> int:
    """Create everything in an empty or new folder; return the number of requests."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty")
    calculate_all(folder)
    with alone(folder):
        write_configurations(folder, [])
        tokens = add_content(folder)
        (folder / TOKENS).write_text(json.dumps(tokens), encoding="utf-8")
        for copy in ("scratch", "plain", "wrong"):
            shutil.rmtree(folder / copy, ignore_errors=True)
            shutil.copytree(folder / "small", folder / copy)
        with closing(open_store(load_configuration(folder / "open.yaml").tenants["empty"])) as store:
            store.prepare()
    return prepare_questions(folder)


def prepare_questions(folder: Path) -> int:
    """Write the requests, the callers' roles, and the files for commands; return the number of requests."""
    with stopped_at(NOW), alone(folder), opened(folder, "open") as client:
        known = {tenant: Known(client, tenant) for tenant in ("small", "usual", "odd", "scratch")}
        questions = [each.as_json() for each in _questions(client, known)]
    write_configurations(folder, list(_roles(known)))
    write_files(folder, known["small"])
    (folder / QUESTIONS).write_text(json.dumps(questions, ensure_ascii=False, indent=0), encoding="utf-8")
    shutil.rmtree(folder / "state", ignore_errors=True)
    return len(questions)


def _questions(client: httpx.Client, known: dict[str, Known]) -> list[Question]:
    """Return every request once; those that change something come last."""
    document = client.get("/openapi.json").json()
    small, usual, odd = (known[tenant] for tenant in ("small", "usual", "odd"))
    found = chain(
        reads.common(document, small),
        reads.spread(document, small, thin=False),
        reads.spread(document, odd, thin=True),
        reads.of_usual(usual),
        reads.of_other_tenants(document),
        reads.places(small),
        reads.places(odd),
        reads.explanations(small, 60),
        reads.explanations(odd, 20),
        reads.explanations(usual, 20),
        reads.finance(small, thin=False),
        reads.finance(odd, thin=True),
        callers.of_callers(document, small, _OTHERS, thin=True),
        callers.of_callers(document, small, _SCOPED, thin=False),
        callers.of_callers(document, odd, _SCOPED, thin=True),
        callers.of_assistants(small, ("", "unit", "anonymous")),
        callers.of_assistants(odd, ("",)),
        changes.invalid("small"),
        changes.bodies(small, thin=False),
        changes.bodies(odd, thin=True),
    )
    once = {each.name: each for each in found}
    return [*once.values(), *changes.writes(), *changes.of_findings_and_replies(known["scratch"])]


def _roles(known: dict[str, Known]) -> Iterator[dict[str, Any]]:
    """Yield the roles of the callers."""
    for name, right in (("admin", "admin"), ("reader", "read"), ("exporter", "export")):
        yield {"users": [f"{name}@acme\\.example"], "allow": [right]}
    yield {"groups": ["team-(?P<team>.+)"], "allow": ["export", "tag"], "scope": {"tag:team": "${team}"}}
    for name, value in (("unit", "business_unit"), ("chain", "chain")):
        scope = {f"category:{value}": ["orders", "leftover"] if value == "business_unit" else ["a"]}
        yield {"users": [f"{name}@acme\\.example"], "allow": ["export"], "scope": scope}
    for tenant in ("small", "odd"):
        identities = known[tenant].most("identity_id")[1:3]
        clusters = known[tenant].most("cluster_resource_id", known[tenant].topic_rows)
        scopes = {
            "identity": {"identity_id": identities},
            "cluster": {"cluster_id": clusters[:1], "product_category": ["KAFKA"]},
        }
        for name, scope in scopes.items():
            yield {"users": [f"{name}@acme\\.example"], "allow": ["export"], "tenants": [tenant], "scope": scope}
