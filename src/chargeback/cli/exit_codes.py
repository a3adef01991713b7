"""The exit codes of the commands."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
CONFIGURATION: Final = 2
#: Of closing a month: something is in the way, or it would book something else than was looked at.
BLOCKED: Final = 2
STALE: Final = 3
INTERRUPTED: Final = 130
