"""Tables of faults for one test: some always run, the others only in long drills."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

_DRILLED = 3


def cases(often: Sequence[object], rarely: Sequence[object]) -> pytest.MarkDecorator:
    """Parametrise a test with ``case`` and ``tries``: each of ``often`` runs once in every run of the suite and a few
    times in a drill, each of ``rarely`` once in a drill."""
    drill = [pytest.mark.drill, pytest.mark.timeout(1800)]
    table = [
        *(pytest.param(case, 1, id=f"quick-1 {case}") for case in often),
        *(pytest.param(case, _DRILLED, id=f"drill-{_DRILLED} {case}", marks=drill) for case in often),
        *(pytest.param(case, 1, id=f"drill-1 {case}", marks=drill) for case in rarely),
    ]
    return pytest.mark.parametrize(("case", "tries"), table)
