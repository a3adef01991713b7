"""What all tests share: laws are tested without a time limit per example, since the machine may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("chargeback", deadline=None, print_blob=True)
settings.load_profile("chargeback")
