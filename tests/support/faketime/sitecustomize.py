"""Imported first by every Python process under ``faketime``: its version 0.9.10 refuses the sleep of Python 3.11 and
newer, which waits for a moment of the monotonic clock; waiting for an event is left alone."""

from __future__ import annotations

import threading
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex, /) -> None:
    threading.Event().wait(float(seconds))


time.sleep = _sleep
