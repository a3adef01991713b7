"""Which requests a fault affects."""

from __future__ import annotations

from chargeback.demo.faults import CredentialLimiter, Fault, Faults


def test_a_fault_hits_its_path_as_often_as_it_says() -> None:
    """A fault begins after the skipped requests, ends after its number of times, and does not affect other paths."""
    faults, fault = Faults(), Fault(status=500, times=2, skip=1)
    faults.add("/iam", fault)
    assert faults.take("/org/v2/environments") is None
    assert [faults.take("/iam/v2/users") for _ in range(4)] == [None, fault, fault, None]
    assert faults.hits("/iam") == 2


def test_faults_follow_each_other() -> None:
    """With two faults on one path, the second begins when the first ends."""
    faults, first, second = Faults(), Fault(status=500), Fault(status=429, times=None)
    faults.add("/iam", first)
    faults.add("/iam", second)
    assert [faults.take("/iam") for _ in range(3)] == [first, second, second]
    faults.clear()
    assert faults.take("/iam") is None


def test_a_bucket_empties_and_fills_again() -> None:
    """After the burst a request is rejected with the seconds to wait; after that time one is allowed."""
    now = [1000.0]
    limiter = CredentialLimiter(2, 0.5, clock=lambda: now[0])
    assert [limiter.take("a")[0] for _ in range(3)] == [True, True, False]
    passes, headers = limiter.take("a")
    assert not passes
    assert headers == {
        "X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4", "Retry-After": "2",
    }  # fmt: skip
    now[0] += 2
    assert limiter.take("a")[0]


def test_credentials_do_not_share_a_bucket() -> None:
    """One key's requests do not limit another key; a successful response has a remaining number and no Retry-After."""
    limiter = CredentialLimiter(1, 1, clock=lambda: 0.0)
    assert limiter.take("a")[0]
    assert limiter.take("b") == (
        True, {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"},
    )  # fmt: skip
