"""Rate limits."""

from __future__ import annotations

from chargeback.demo.faults import RateLimiter


def test_a_bucket_empties_and_fills_again() -> None:
    """After the burst a request is refused with the seconds to wait; after them one passes."""
    now = [1000.0]
    limiter = RateLimiter(2, 0.5, clock=lambda: now[0])
    assert [limiter.take("a")[0] for _ in range(3)] == [True, True, False]
    passes, headers = limiter.take("a")
    assert not passes
    assert headers == {
        "X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4", "Retry-After": "2",
    }  # fmt: skip
    now[0] += 2
    assert limiter.take("a")[0]


def test_credentials_do_not_share_a_bucket() -> None:
    """One key's requests do not limit another's; a passing answer says what remains, without Retry-After."""
    limiter = RateLimiter(1, 1, clock=lambda: 0.0)
    assert limiter.take("a")[0]
    assert limiter.take("b") == (
        True, {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"},
    )  # fmt: skip
