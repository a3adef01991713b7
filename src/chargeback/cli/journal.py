"""``chargeback journal``: write the journal of a month to a file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chargeback.cli.options import DEFAULT_CONFIG, INSTANT, INSTANT_FORMATS, ConfigOption, failed, one_tenant
from chargeback.cli.statements import BasisOption, opened, print_tie_out, to_basis, to_grouping, to_month
from chargeback.model.accounting import AccountingPeriod

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.config.journal import JournalProfile
    from chargeback.reports.closing.statements import Basis
    from chargeback.reports.statements.content import JournalAnswer, Statements

_FORMATS: Final = ("csv", "json")


def _format(text: str | None) -> str | None:
    if text is not None and text not in _FORMATS:
        raise typer.BadParameter(f"should be one of {', '.join(_FORMATS)}")
    return text


def journal(  # noqa: PLR0913, PLR0917 - the options of a command
    tenant: Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant.")],
    period: Annotated[str, typer.Option(metavar="YYYY-MM", callback=to_month, help="The month, of UTC days.")],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", dir_okay=False, help="The file.")],
    category: Annotated[
        str | None, typer.Option(metavar="KEY", help="Debit the values of this cost category; default: journal.by.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="DIMENSION",
            callback=to_grouping,
            help="Or identities (identity_id), or the values of a tag (tag:KEY).",
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", callback=_format, help="csv (the default) or json.")
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="NAME", help="Or a template in journal.templates of the tenant.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            metavar=INSTANT, formats=INSTANT_FORMATS, help="The journal of what was charged at this instant, in UTC."
        ),
    ] = None,
    basis: BasisOption = None,
) -> None:
    """Write the journal of a month. Debit each cost centre with its statement, and credit the clearing account; exit
    with 1 if the statements do not add up to the bill."""
    from chargeback.emitters.files import write_whole

    if category is not None and by is not None:
        raise typer.BadParameter("name either a cost category or what else to group by", param_hint="--category / --by")
    if form is not None and template is not None:
        raise typer.BadParameter("name either a format or a template", param_hint="--format / --template")
    chosen = one_tenant(config, tenant)
    profile = chosen.journal
    if template is not None and template not in profile.templates:
        known = ", ".join(sorted(profile.templates)) or "none"
        raise typer.BadParameter(f"should be one of journal.templates: {known}", param_hint="--template")
    instant = None if as_of is None else as_of.replace(tzinfo=UTC)
    grouping = by or (profile.by if category is None else f"category:{category}")
    found, made = _compiled(chosen, AccountingPeriod.named(period), grouping, instant, to_basis(basis))
    write_whole(to, [_written(made, profile, form, template)], lambda: None)
    typer.echo(
        f"{to}: {len(made.lines)} lines of {period}, debits {made.debit} = credits {made.credit} "
        f"{found.heading.currency}, {found.heading.status}"
    )
    print_tie_out(found.tie_out, found.heading.currency)


def _compiled(
    tenant: Tenant, period: AccountingPeriod, by: str, as_of: datetime | None, basis: Basis | None
) -> tuple[Statements, JournalAnswer]:
    """Return the statements and the journal of a month, or end with an error."""
    from chargeback.reports.closing.statements import journal_for, statements_of

    with opened(tenant, as_of) as (view, reader, posted):
        try:
            found = statements_of(view, reader, posted, period, by, basis)
            return found, journal_for(view, reader, posted, period, by, basis)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--basis") from None


def _written(made: JournalAnswer, profile: JournalProfile, form: str | None, template: str | None) -> bytes:
    """Return the content of the file, or end with an error."""
    import json

    from chargeback.errors import TemplateFailed
    from chargeback.reports.statements.journal import journal_csv
    from chargeback.reports.statements.journal_templates import journal_by_template

    if template is not None:
        try:
            return journal_by_template(made, profile.templates[template])
        except TemplateFailed as failure:
            failed(failure.message)
    if form == "json":
        return f"{json.dumps(made.model_dump(mode='json'), ensure_ascii=False, indent=2)}\n".encode()
    return journal_csv(made).encode()
