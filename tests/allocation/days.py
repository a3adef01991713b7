"""The evidence of days, from text or at random."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from chargeback.allocation.day import Evidence
from chargeback.model.money import from_units
from tests.allocation.bills import DAY, POLICIES, bill, members, usage


def evidence(billed: str, used: str = "", belong: str = "", *, metrics: bool = True) -> Evidence:
    """Return a day's evidence from text."""
    return Evidence(DAY, bill(billed), usage(used), members(belong), metrics_available=metrics)


_costs = st.one_of(
    st.integers(-(10**6), 10**6),
    st.integers(-(10**16), 10**16),
    st.integers(-(10**37), 10**37).filter(lambda units: abs(units) > 10**30),
    st.just(0),
).map(lambda units: f"{from_units(units):f}")


@st.composite
def random_days(draw: st.DrawFn, most: int = 5000) -> Evidence:
    """Generate days of a few lines of any size and sign, with up to ``most`` identities."""
    resources = ["lkc-1", "lkc-2"]
    kinds = [*POLICIES, "NEWS"]
    lines = draw(
        st.lists(st.tuples(st.sampled_from(resources), st.sampled_from(kinds), _costs), min_size=1, max_size=6)
    )
    # One huge line at most: the sums of several may exceed 38 digits.
    huge = [line for line in lines if abs(Decimal(line[2])) > 10**15]
    lines = [line for line in lines if line not in huge] + huge[:1]
    many = draw(st.sampled_from([count for count in (0, 1, 2, 3, 7, 100, 1000, 5000) if count <= most]))
    people = [f"sa-{number:05}" for number in range(many)]
    scale = draw(st.sampled_from([1, 10**6, 10**12, 10**25]))
    seed = draw(st.integers(1, 10**9))
    used = [
        f"{measure} {resource} {who} {(seed * (number + 1)) % 1009 * scale // 1009}"
        for measure in draw(st.sets(st.sampled_from(["bytes_in", "bytes_out"])))
        for resource in draw(st.sets(st.sampled_from(resources)))
        for number, who in enumerate([*people, "UNALLOCATED"])
    ]
    belong = [
        f"{resource} {relation} {' '.join(people)}"
        for resource, relation in draw(
            st.sets(st.sampled_from([("lkc-1", "active"), ("lkc-2", "active"), ("lkc-1", "owner"), ("*", "period")]))
        )
        if people
    ]
    return evidence("\n".join(" ".join(line) for line in lines), "\n".join(used), "\n".join(belong))
