"""The exit codes of the commands."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
CONFIGURATION: Final = 2
INTERRUPTED: Final = 130
