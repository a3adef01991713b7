"""``chargeback categories``: cost categories as files, for those who keep them in version control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import (
    DEFAULT_CONFIG,
    FAILED,
    ConfigOption,
    TenantName,
    failed,
    invalid_file,
    one_tenant,
    opened_storage,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from chargeback.categories.document import CostCategory
    from chargeback.reports.categories.editing import CategoryEdit

app = typer.Typer(
    help="Apply, compare, export and import cost categories.", no_args_is_help=True, rich_markup_mode=None
)

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The YAML file, with `cost_categories:` and a document below each key.",
    ),
]


def _visible(reason: str | None) -> str | None:
    from chargeback.model.texts import is_visible

    if reason and not is_visible(reason):
        raise typer.BadParameter("should not be blank")
    return reason


ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why; kept with the version.", callback=_visible),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]

_STDOUT = Path("-")


@app.command()
def apply(
    file: FileArgument,
    tenant: TenantName,
    config: ConfigOption = DEFAULT_CONFIG,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Write the cost categories of a file, all or none. Others stay as they are."""
    categories = read_file(file, tenant, config)
    _write(tenant, config, lambda _: categories, reason=reason, dry_run=dry_run)


@app.command()
def diff(file: FileArgument, tenant: TenantName, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Show what `apply` would change; exit with 1 if anything."""
    from chargeback.reports.categories.editing import preview_categories
    from chargeback.store.control.cost_categories import list_categories

    categories = read_file(file, tenant, config)
    with opened_storage(tenant, config) as store, store.control.read() as connection:
        edits = preview_categories(connection, categories)
        stored = [each.key for each in list_categories(connection)]
    _print(edits, is_done=False)
    others = sorted(set(stored) - {each.key for each in categories})
    if others:
        typer.echo(f"note: not in the file, and left alone: {', '.join(others)}")
    if any(edit.is_change for edit in edits):
        raise typer.Exit(FAILED)


@app.command()
def export(
    tenant: TenantName,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", dir_okay=False, help="The file to write; - is standard output.")
    ] = _STDOUT,
    config: ConfigOption = DEFAULT_CONFIG,
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="KEY", help="Only this one; can be given several times.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file, with all comments in it.")] = False,
) -> None:
    """Write the cost categories as a YAML file. In canonical form."""
    from chargeback.reports.categories.editing import categories_yaml
    from chargeback.store.control.cost_categories import list_categories

    with opened_storage(tenant, config) as store, store.control.read() as connection:
        versions = list_categories(connection)
    missing = [name for name in key or () if name not in {each.key for each in versions}]
    if missing:
        failed(f"tenant {tenant}: there is no cost category {', '.join(missing)}")
    text = categories_yaml(each for each in versions if not key or each.key in key)
    if file == _STDOUT:
        typer.echo(text, nl=False)
        return
    try:
        with file.open("w" if force else "x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError:
        failed(f"{file} exists; --force replaces it, with all comments in it")
    except OSError as error:
        failed(f"{file} cannot be written: {error.strerror}")


@app.command("import")
def import_(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Where it comes from: csv, backstage, strimzi, or a plugin's name.")
    ],
    path: Annotated[Path, typer.Argument(metavar="PATH", exists=True, help="The file or the folder to read.")],
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="The cost category.")],
    tenant: TenantName,
    config: ConfigOption = DEFAULT_CONFIG,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Make rules of owners that a source knows. Of identities, resources, topics. A later import from the same source
    replaces them, and no others."""
    from chargeback.categories.document import CostCategory
    from chargeback.category_sources.discovery import discover_sources
    from chargeback.errors import ConfigurationError
    from chargeback.reports.categories.editing import parse_version
    from chargeback.reports.categories.entries import with_import
    from chargeback.store.control.cost_categories import read_category

    def _make(connection: Connection) -> list[CostCategory]:
        present = read_category(connection, key)
        category = CostCategory(key) if present is None else parse_version(present)
        return [with_import(category, source, content, is_new=present is None)]

    reader = discover_sources().named(source)
    try:
        content = reader.read(path, key)
        for note in content.notes:
            typer.echo(f"note: {note}", err=True)
        if not content.entries:
            failed(f"{path}: {source} found nothing in it, so nothing was changed")
        _write(tenant, config, _make, reason=reason or f"import from {source}", dry_run=dry_run)
    except ConfigurationError as error:
        raise invalid_file(path, error.problems) from None


def read_file(file: Path, tenant: str, config: Path) -> list[CostCategory]:
    """Return the categories of a file for a tenant, or end with every problem."""
    from chargeback.errors import ConfigurationError
    from chargeback.reports.categories.editing import read_categories

    try:
        return read_categories(file.read_text(encoding="utf-8-sig"), partial(_check_measures, tenant, config))
    except ConfigurationError as error:
        raise invalid_file(file, error.problems) from None
    except UnicodeDecodeError as error:
        raise invalid_file(file, [f"is not UTF-8: {error.reason} at byte {error.start}"]) from None


def _check_measures(tenant: str, config: Path, category: CostCategory) -> None:
    """Check that what a category shares costs by is measured, or will be by the policies of the tenant."""
    from chargeback.recompute.rules import AllocationRules, present_tenant
    from chargeback.reports.categories.editing import check_measures, measures_in
    from chargeback.store.facts.tables import USAGE_TABLE
    from chargeback.store.queries.engine import CancellationToken, QueryEngine
    from chargeback.store.queries.measurements import Measured, with_owners

    if not measures_in(category):
        return
    with opened_storage(tenant, config) as store:
        chosen = present_tenant(one_tenant(config, tenant), store.control)
        known = AllocationRules.of(chosen).catalogue.measures
        if measures_in(category) <= known:
            return
        with QueryEngine() as engine, engine.cursor(CancellationToken()) as cursor:
            known |= Measured(store.facts.snapshot(USAGE_TABLE).files, partial(with_owners, store)).measures(cursor)
    check_measures(category, known)


def _write(
    tenant: str,
    config: Path,
    make: Callable[[Connection], list[CostCategory]],
    *,
    reason: str | None,
    dry_run: bool,
) -> None:
    """Write the categories that ``make`` returns in one transaction, and print what changed."""
    from chargeback.reports.categories.editing import preview_categories, save_categories
    from chargeback.store.control.audit import COMMAND_LINE
    from chargeback.store.control.catalogue import lock_tenant

    with opened_storage(tenant, config) as store:
        if dry_run:
            with store.control.read() as connection:
                edits = preview_categories(connection, make(connection))
        else:
            with store.control.write(durable=True) as connection:
                lock_tenant(connection)
                edits = save_categories(connection, make(connection), who=COMMAND_LINE, reason=reason)
    _print(edits, is_done=not dry_run)


def _print(edits: Sequence[CategoryEdit], *, is_done: bool) -> None:
    """Print what was done to each category, or would be."""
    would = "" if is_done else "would be "
    for edit in edits:
        key, version = edit.after.key, edit.after.version
        if not edit.is_change:
            typer.echo(f"{key}: unchanged, version {version}")
            continue
        typer.echo(f"{key}: {would}{'created as' if edit.before is None else 'changed to'} version {version}")
        for difference in edit.differences:
            typer.echo(f"  {difference}")
