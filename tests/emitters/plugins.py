"""Third-party emitters, installed as distributions in a folder."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chargeback.emitters.discovery import discover_emitters

#: Writes one line per period: its first day, its number of rows and its configuration.
TINY = textwrap.dedent(
    """
    import time
    from pathlib import Path

    from pydantic import SecretStr

    from chargeback.emitters.contract import Emitter, EmitterParams, EmitterType, LocalPath
    from chargeback.errors import EmitterError

    class Params(EmitterParams):
        file: LocalPath
        colour: str = "blue"
        token: SecretStr | None = None
        broken_on: str | None = None
        error: str = "EmitterError"
        hangs: bool = False

    class Tiny(Emitter):
        def __init__(self, context, params, stop):
            self.context, self.params, self.stop = context, params, stop

        def emit(self, periods, facts):
            (period,) = periods
            if self.params.hangs:
                self.stop.wait(60)
                raise RuntimeError("interrupted")
            if str(period.start) == self.params.broken_on:
                raise {"EmitterError": EmitterError, "SystemExit": SystemExit}.get(
                    self.params.error, ZeroDivisionError)("the printer is on fire")
            rows = sum(batch.num_rows for batch in facts.rows(period))
            with self.params.file.open("a") as file:
                file.write(f"{self.context.name} {period.start} {rows} {self.params.colour}\\n")

    class TinyType(EmitterType):
        params_model = Params
        aggregations = frozenset({"daily", "weekly"})

        def open(self, context, params, stop):
            if params.error == "open":
                raise EmitterError("no ink")
            return Tiny(context, params, stop)

    emitter_type = TinyType()
    """
)


def install(folder: Path, source: str = TINY, name: str = "tiny") -> None:
    """Write a distribution into ``folder`` whose entry point ``name`` is the source's ``emitter_type``."""
    (folder / f"{name}_emitter.py").write_text(source)
    metadata = folder / f"{name}_emitter-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-emitter\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[chargeback.emitters]\n{name} = {name}_emitter:emitter_type\n")


@contextmanager
def installed(folder: Path, source: str = TINY, name: str = "tiny") -> Iterator[None]:
    """Install the distribution in this process for the length of the ``with``."""
    install(folder, source, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        discover_emitters.cache_clear()
        try:
            yield
        finally:
            discover_emitters.cache_clear()
            import sys

            sys.modules.pop(f"{name}_emitter", None)
