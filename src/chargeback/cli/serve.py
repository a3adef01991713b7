"""``chargeback serve``: the API, the worker, or both."""

from __future__ import annotations

import gc
import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption
from chargeback.cli.shutdown import ShutdownHandler

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from chargeback.config import Configuration


class Mode(StrEnum):
    """The mode of the process; only ``both`` lets the API start runs."""

    API = "api"
    WORKER = "worker"
    BOTH = "both"


def serve(
    config: ConfigOption = DEFAULT_CONFIG,
    mode: Annotated[Mode, typer.Option("--mode", metavar="MODE", help="The mode: api, worker, or both.")] = Mode.BOTH,
) -> None:
    """Serve the API, and run the pipeline periodically. Until SIGTERM or Ctrl-C."""
    gc.disable()  # next to nothing of what a start makes is garbage; what waits for work collects it again
    try:
        from chargeback.config import load_configuration
        from chargeback.config.advice import advice_about
        from chargeback.logs import configure_logging

        configuration = load_configuration(config)
        configure_logging(configuration.logging, configuration.secrets())
        for sentence in advice_about(configuration):
            _log.warning("%s", sentence)
        serve_until_stopped(configuration, mode)
    finally:
        gc.enable()


def serve_until_stopped(configuration: Configuration, mode: Mode) -> None:
    """Serve in this process until SIGTERM or SIGINT, then stop everything within about ten seconds.

    Raises:
        ListenError: the port cannot be used.
        PoliciesChanged: policies with dates are not those by which days were calculated.
        McpUnavailable: assistants should be answered, and what does this is not installed.
        SchemaError: a control database is ahead of this version, or its history is broken.
    """
    from chargeback.cli.http_server import HttpServer, listen
    from chargeback.recompute.policies import check_policies
    from chargeback.store.tenant import require_usable_storage

    answers_assistants = configuration.mcp.enabled and mode is not Mode.WORKER
    if answers_assistants:
        from chargeback.assistants.sdk import require_sdk

        require_sdk()
    port = configuration.features.worker_port if mode is Mode.WORKER else configuration.api.port
    socket = listen(configuration.api.host, port) if port else None
    engine = None
    if mode is not Mode.API:
        from chargeback.pipeline.engine import Engine

        engine = Engine(configuration, None)
    stopper = ShutdownHandler(engine.stop if engine else lambda: None)
    stopper.listen()
    try:
        if engine is not None:
            engine.start(stopper.request)
        else:
            require_usable_storage(list(configuration.tenants.values()), check_policies)
        if socket is None:
            gc.enable()
            stopper.requested.wait()
        else:
            from chargeback.api.app_factory import create_app_from

            app = create_app_from(configuration, mode.value, engine)
            if answers_assistants:
                from chargeback.assistants.server import add_mcp

                add_mcp(app, configuration.mcp)
            HttpServer(app, stopper).run_on(socket)
    finally:
        stopper.finish()
        if socket is not None:
            socket.close()
    if engine is not None and engine.failure is not None:
        raise engine.failure
