"""The exit codes of the commands."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
CONFIGURATION: Final = 2
#: Of closing a month: something is in the way, or it would book something else than was looked at.
BLOCKED: Final = 2
STALE: Final = 3
#: Of a simulation: more moves than the limits allow, or something does.
BEYOND: Final = 3
MOVES: Final = 4
INTERRUPTED: Final = 130
