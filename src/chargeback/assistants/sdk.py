"""The SDK of the Model Context Protocol, which is the extra ``mcp`` of this package."""

from __future__ import annotations

from chargeback import how_to_install
from chargeback.errors import McpUnavailable


def require_sdk() -> None:
    """Check that the SDK is there; nothing else of this package that needs it may be imported before.

    Raises:
        McpUnavailable: it is not installed.
    """
    try:
        import mcp.server.lowlevel  # noqa: F401
    except ImportError:
        raise McpUnavailable(f"assistants need the extra mcp: {how_to_install('mcp')}") from None
