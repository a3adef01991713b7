"""Imported first by every Python process under ``faketime``: its version 0.9.10 does not support the sleep of Python
3.11 and newer, which waits for an absolute time of the monotonic clock. Waiting for an event works."""

from __future__ import annotations

import threading
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex, /) -> None:
    threading.Event().wait(float(seconds))


time.sleep = _sleep
