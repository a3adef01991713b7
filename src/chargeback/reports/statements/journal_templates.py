"""Journals in the format of an ERP system: written by a template of the tenant, in a separate process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Final

from chargeback.config.journal import JournalTemplate
from chargeback.errors import TemplateFailed
from chargeback.reports.statements.content import JournalAnswer

_PROCESS: Final = "chargeback.reports.statements.template_process"
#: Seconds after which the process is killed even if it has not used its processor time.
_LONGEST: Final = 8


def journal_by_template(found: JournalAnswer, template: JournalTemplate) -> bytes:
    """Return the output of a template for a journal.

    Raises:
        TemplateFailed: the template is invalid, is not allowed something, or needs too much time, memory or space.
    """
    from chargeback.reports.statements.template_process import FAILED, MOST_SECONDS  # with Jinja

    values = found.model_dump(mode="json")
    asked = json.dumps({"source": template.source, "form": template.form, "values": values}).encode()
    try:
        # The environment is empty, because it may contain secrets. `-I` ignores packages of the folder and the user.
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
