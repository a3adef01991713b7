"""Imported by every Python process under ``faketime`` at its start: version 0.9.10 of that program does not support the
sleep of Python 3.11 and newer, which waits for an absolute time of the monotonic clock. Waiting for an event works."""

from __future__ import annotations

import threading
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex, /) -> None:
    threading.Event().wait(float(seconds))


time.sleep = _sleep
