"""Chargeback: what every team really spent on Kafka, to the last digit."""

import json
import sys
from pathlib import Path

__version__ = "1.0.0.dev0"


def how_to_install(extra: str, environment: Path | None = None) -> str:
    """Return what to type so that this installation (the one of ``environment``) has an extra.

    No packages are published, so it is installed from a checkout, and by what made the environment: pip cannot reach
    the environment of a command that pipx or uv installed.
    """
    environment = environment or Path(sys.prefix)
    if (environment / "pipx_metadata.json").exists():
        command = "pipx install --force"
    elif (environment / "uv-receipt.toml").exists():
        command = "uv tool install --force"
    else:
        command = "pip install -e" if _is_editable() else "pip install"
    return f"`{command} '.[{extra}]'` in a checkout of chargeback"


def _is_editable() -> bool:
    """Return whether this installation runs the checkout itself (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution  # its import is a fifth of a command's start

    try:
        origin = distribution("chargeback").read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return origin is not None and bool(json.loads(origin).get("dir_info", {}).get("editable"))
