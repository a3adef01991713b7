"""Act as another user of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[str]:
    """Act as a user without access to files of mode 0600 and folders of mode 0700; yield its ``user:group``.

    Without root, the user does not change: the test must also make files unreadable for their owner, with mode 0.
    """
    if os.geteuid() != 0:
        yield f"{os.geteuid()}:{os.getegid()}"
        return
    group = os.getegid()
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield f"{NOBODY}:{NOBODY}"
    finally:
        os.seteuid(0)
        os.setegid(group)
