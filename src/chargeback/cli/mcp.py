"""``chargeback mcp``: answer an assistant over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption


def mcp(
    config: ConfigOption = DEFAULT_CONFIG,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TOKEN",
            envvar="CHARGEBACK_TOKEN",
            help="Answer only with what this access token may see (`chargeback token create`). Other users of the "
            "machine can read it on the command line; use the variable there.",
        ),
    ] = None,
) -> None:
    """Answer an assistant that speaks MCP. Over standard input and output, until the input ends."""
    from chargeback.assistants.sdk import require_sdk
    from chargeback.config import load_configuration
    from chargeback.logs import configure_logging
    from chargeback.store.tenant import require_usable_storage

    require_sdk()
    configuration = load_configuration(config)
    configure_logging(configuration.logging, configuration.secrets())
    require_usable_storage(list(configuration.tenants.values()))

    from chargeback.assistants.server import serve_stdio

    serve_stdio(configuration, token or None)
