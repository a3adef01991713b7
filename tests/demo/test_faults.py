"""Which fault hits which request."""

from __future__ import annotations

from chargeback.demo.faults import Fault, Faults


def test_a_fault_hits_its_path_as_often_as_it_says() -> None:
    """It begins after the skipped requests, ends after its times, and leaves other paths alone."""
    faults, fault = Faults(), Fault(status=500, times=2, skip=1)
    faults.add("/iam", fault)
    assert faults.take("/org/v2/environments") is None
    assert [faults.take("/iam/v2/users") for _ in range(4)] == [None, fault, fault, None]
    assert faults.hits("/iam") == 2


def test_faults_follow_each_other() -> None:
    """On one path, the second begins where the first ends."""
    faults, first, second = Faults(), Fault(status=500), Fault(status=429, times=None)
    faults.add("/iam", first)
    faults.add("/iam", second)
    assert [faults.take("/iam") for _ in range(3)] == [first, second, second]
    faults.clear()
    assert faults.take("/iam") is None
