"""Journals as finance's own system wants them: written by a template of the tenant, in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Final

from chargeback.config.journal import JournalTemplate
from chargeback.errors import TemplateFailed
from chargeback.reports.statements.content import JournalAnswer
from chargeback.reports.statements.template_process import FAILED, MOST_SECONDS

_PROCESS: Final = "chargeback.reports.statements.template_process"
#: Seconds after which the process is ended even if it has not used its processor time.
_LONGEST: Final = 8


def journal_by_template(found: JournalAnswer, template: JournalTemplate) -> bytes:
    """Return what a template writes of a journal.

    Raises:
        TemplateFailed: it is wrong, uses what it may not, or needs too much time, memory or space.
    """
    values = found.model_dump(mode="json")
    asked = json.dumps({"source": template.source, "form": template.form, "values": values}).encode()
    try:
        # Nothing of the environment: it may hold secrets. `-I` ignores what a folder or a user may add.
        done = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-I", "-m", _PROCESS],
            input=asked,
            capture_output=True,
            timeout=_LONGEST,
            check=False,
            env={},
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise TemplateFailed(f"the template {template.name} was ended after {_LONGEST} s") from None
    if done.returncode == 0:
        return done.stdout
    if done.returncode == FAILED:
        raise TemplateFailed(f"the template {template.name}: {done.stderr.decode(errors='replace')}")
    if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL}:
        raise TemplateFailed(f"the template {template.name} needs more than {MOST_SECONDS} s")
    reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    raise TemplateFailed(f"the template {template.name} ended with {done.returncode}: {reason}")
