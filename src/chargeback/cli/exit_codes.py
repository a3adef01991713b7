"""What the commands' exit codes mean."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
CONFIGURATION: Final = 2
INTERRUPTED: Final = 130
