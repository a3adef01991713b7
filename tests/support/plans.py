"""Results of simulations without a day."""

from __future__ import annotations

from datetime import date

from chargeback import __version__
from chargeback.allocation.policies import PolicyCatalogue
from chargeback.reports.simulation import BeforeAndAfter, MovedByCause, SimulationAnswer, SimulationBase

_NOTHING = "0.00"


def empty_answer(present: PolicyCatalogue, candidate: PolicyCatalogue) -> SimulationAnswer:
    """Return the result of a simulation of policies without lines, with its digest."""
    nothing = {"before": _NOTHING, "after": _NOTHING}
    base = SimulationBase(days=[], policies=present.hash, candidate=candidate.hash, software=__version__)
    lists = ("left_out", "never_measured", "never_applied", "policies", "items", "examples", "corrections")
    answer = SimulationAnswer.model_validate(
        {
            **{"start_date": date(2026, 1, 1), "end_date": date(2026, 1, 1), "currency": "USD"},
            **{"group_by": ["identity_id"], "base": base, "digest": "", "verdict": "complete", "names": {}},
            **{"billed": _NOTHING, "moved": _NOTHING, "moved_share": "0"},
            "by_cause": dict.fromkeys(MovedByCause.model_fields, _NOTHING),
            "unallocated": BeforeAndAfter.model_validate(nothing),
            **{name: [] for name in lists},
        }
    )
    return answer.model_copy(update={"digest": answer.content_digest})
