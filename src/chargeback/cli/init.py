"""``chargeback init``: write an initial configuration."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from chargeback.cli.options import DEFAULT_CONFIG, failed
from chargeback.disk import explain_denial


class InitialEcosystem(StrEnum):
    """The ecosystems for which there is an initial configuration."""

    CONFLUENT_CLOUD = "confluent_cloud"
    FOCUS = "focus"


def init(
    path: Annotated[Path, typer.Option("--path", metavar="FILE", help="The path of the new file.")] = DEFAULT_CONFIG,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    ecosystem: Annotated[
        InitialEcosystem,
        typer.Option(
            "--ecosystem",
            metavar="NAME",
            help="The source of the bill: confluent_cloud, or focus for files in FOCUS, of any provider.",
        ),
    ] = InitialEcosystem.CONFLUENT_CLOUD,
) -> None:
    """Write a commented configuration file."""
    template = _template("template.yaml")
    if ecosystem is not InitialEcosystem.CONFLUENT_CLOUD:
        template = template.partition("tenants:\n")[0] + _template(f"template-{ecosystem}.yaml")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(template)
    except FileExistsError:
        failed(f"{path} exists; --force replaces it")
    except OSError as error:
        failed(f"{path} cannot be written: {error.strerror}{explain_denial(path.absolute())}")
    typer.echo(f"Wrote {path}. Set the variables that it uses (for example in a .env file next to it), then:")
    typer.echo(f"  chargeback check --config {path} --online")
    typer.echo(f"  chargeback serve --config {path}")


def _template(name: str) -> str:
    return files("chargeback.config").joinpath(name).read_text(encoding="utf-8")
