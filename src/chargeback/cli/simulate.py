"""``chargeback simulate``: other policies and cost categories on days that are known, before they count."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from chargeback.cli.options import (
    BEYOND,
    DAY,
    DAY_FORMATS,
    DEFAULT_CONFIG,
    INSTANT,
    INSTANT_FORMATS,
    MOVES,
    ConfigOption,
    failed,
    invalid_file,
    one_tenant,
    opened_storage,
)

if TYPE_CHECKING:
    from chargeback.categories.document import CostCategory
    from chargeback.config import Tenant
    from chargeback.recompute.simulate import Trial
    from chargeback.reports.simulation import SimulatedSum, SimulationAnswer
    from chargeback.store.control.cost_categories import CategoryVersion
    from chargeback.store.control.policies import AppliedVersion

_FORMATS: Final = ("table", "json", "markdown")
#: How many groups a table shows.
_SHOWN: Final = 20


def _percentage(text: str | None) -> Decimal | None:
    """Return the number of ``5%``.

    Raises:
        BadParameter: it is something else.
    """
    return None if text is None else _number(text.removesuffix("%"), "a share of the bill, such as 5%")


def _amount(text: str | None) -> Decimal | None:
    """Return an amount.

    Raises:
        BadParameter: it is none.
    """
    return None if text is None else _number(text, "an amount, such as 500")


def _number(text: str, what: str) -> Decimal:
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0:
        raise typer.BadParameter(f"{text} should be {what}")
    return found


def _format(text: str) -> str:
    if text not in _FORMATS:
        raise typer.BadParameter(f"{text} should be one of {', '.join(_FORMATS)}")
    return text


def simulate(  # noqa: PLR0913, PLR0917 - the options of a command
    tenant: Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant.")],
    start: Annotated[
        datetime, typer.Option("--from", metavar=DAY, formats=DAY_FORMATS, help="The first UTC day to try them on.")
    ],
    end: Annotated[
        datetime, typer.Option("--through", "--to", metavar=DAY, formats=DAY_FORMATS, help="The last UTC day.")
    ],
    policies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A YAML file with what allocation_policies would be, or a whole configuration with the tenant.",
        ),
    ] = None,
    cost_categories: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A YAML file with what cost categories would be, as for `chargeback categories apply`.",
        ),
    ] = None,
    group_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="By what to compare; can be given several times. Default: identity_id, or the cost category that "
            "alone is tried.",
        ),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(metavar=INSTANT, formats=INSTANT_FORMATS, help="With what was known at this instant, in UTC."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", callback=_format, help="table, json or markdown.")
    ] = "table",
    fail_if_moved: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Exit with 3 if more than this share moves, such as 5%.")
    ] = None,
    fail_if_any_moves: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Exit with 3 if a group would change by more than this.")
    ] = None,
    fail_if_unallocated_rises: Annotated[
        bool, typer.Option("--fail-if-unallocated-rises", help="Exit with 3 if more would be unallocated.")
    ] = False,
    only_if_changed: Annotated[
        bool, typer.Option("--only-if-changed", help="Print nothing if everything is as it is at present.")
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write a plan, for `chargeback policies apply`."),
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Try other policies or cost categories on days that are known. Nothing is stored; exit with 0 if no amount would
    move, 4 if some would, 3 if more than the limits allow."""
    if start > end:
        raise typer.BadParameter("--from is after --through")
    if policies is None and cost_categories is None:
        raise typer.BadParameter("give what is tried: --policies, --cost-categories or both")
    if plan is not None and cost_categories is not None:
        raise typer.BadParameter(
            "a plan puts policies in force; change cost categories with `chargeback categories apply`",
            param_hint="--plan",
        )
    limits = _Limits(_percentage(fail_if_moved), _amount(fail_if_any_moves), fail_if_unallocated_rises)
    chosen = one_tenant(config, tenant)
    present, applied, stored = _present(chosen, config)
    tried: object = present.plugin_settings.allocation_policies
    if policies is not None:
        tried = _read(policies, tenant, [each.raw for each in applied])
    at = None if as_of is None else as_of.replace(tzinfo=UTC)
    trial = _trial(chosen, policies, tried, (start, end), at)
    if cost_categories is not None:
        trial = replace(trial, categories=_changed(cost_categories, tenant, config, stored))
    if only_if_changed and trial.candidate.hash == _hash_of(present) and not trial.categories:
        return
    by = [f"category:{key}" for key in trial.categories][:1] if policies is None else []
    found = _simulated(chosen, trial, group_by or by or ["identity_id"])
    if plan is not None:
        asked = {"policies": tried, "as_of": None if at is None else at.isoformat()}
        _write_plan(plan, asked, found)
    beyond = limits.exceeded_by(found)
    _PRINT[format_](found, beyond)
    if beyond:
        raise typer.Exit(BEYOND)
    if found.items:
        raise typer.Exit(MOVES)


class _Limits:
    """How much may move."""

    def __init__(self, share: Decimal | None, amount: Decimal | None, unallocated: bool) -> None:
        self._share = share
        self._amount = amount
        self._unallocated = unallocated

    def exceeded_by(self, found: SimulationAnswer) -> list[str]:
        """Return in words what goes beyond the limits."""
        beyond = []
        if self._share is not None and found.moved_share > self._share:
            beyond.append(f"{found.moved_share} % moves, more than {self._share} %")
        largest = found.items[0].delta.copy_abs() if found.items else Decimal(0)
        if self._amount is not None and largest > self._amount:
            beyond.append(f"a group changes by {_money(largest, found)}, more than {_money(self._amount, found)}")
        rise = found.unallocated.after - found.unallocated.before
        if self._unallocated and rise > 0:
            beyond.append(f"{_money(rise, found)} more would be unallocated")
        return beyond


def _hash_of(tenant: Tenant) -> str:
    from chargeback.recompute.rules import AllocationRules

    return AllocationRules.of(tenant).catalogue.hash


def _present(tenant: Tenant, config: Path) -> tuple[Tenant, list[AppliedVersion], list[CategoryVersion]]:
    """Return a tenant with the versions of its policies that were applied, which are in force in addition to those of a
    file; these versions; and its cost categories."""
    from chargeback.recompute.rules import with_stored
    from chargeback.store.control.cost_categories import list_categories
    from chargeback.store.control.policies import read_applied

    with opened_storage(tenant.name, config) as store, store.control.read() as connection:
        return with_stored(tenant, connection), read_applied(connection), list_categories(connection)


def _changed(file: Path, tenant: str, config: Path, stored: Sequence[CategoryVersion]) -> dict[str, CostCategory]:
    """Return the cost categories of a file that are not as they are stored, by key; or end with the mistakes in it."""
    from chargeback.cli.categories import read_file
    from chargeback.reports.categories.editing import parse_version

    known = {each.key: parse_version(each) for each in stored}
    return {each.key: each for each in read_file(file, tenant, config) if each != known.get(each.key)}


def _read(file: Path, tenant_name: str, applied: Sequence[Mapping[str, Any]]) -> object:
    """Return the policies of a file and those that were applied, as JSON has them, or end with the mistakes in it."""
    from chargeback.allocation.policies import with_versions
    from chargeback.config.document import values_of
    from chargeback.errors import ConfigurationError

    try:
        found = _policies_in(values_of(file.read_text(encoding="utf-8")), tenant_name)
    except UnicodeDecodeError as error:
        raise invalid_file(file, [error]) from None
    except ConfigurationError as error:
        raise invalid_file(file, error.problems) from None
    if isinstance(found, Mapping | list):
        found = with_versions(found, applied)
    return json.loads(json.dumps(found, default=str))


def _trial(
    tenant: Tenant, file: Path | None, policies: object, days: tuple[datetime, datetime], as_of: datetime | None
) -> Trial:
    """Return what is to be tried, or end with the mistakes in the file."""
    from chargeback.errors import ConfigurationError
    from chargeback.model.days import ONE_DAY, DayRange
    from chargeback.recompute.simulate import Trial

    try:
        first, last = (each.date() for each in days)
        return Trial.of(tenant, policies, DayRange(first, last + ONE_DAY), as_of)
    except ConfigurationError as error:
        if file is None:
            raise
        raise invalid_file(file, error.problems) from None


def _write_plan(file: Path, asked: Mapping[str, object], found: SimulationAnswer) -> None:
    """Write a plan, in the form of a simulation over HTTP. Half of one has no digest, and is refused."""
    content = {"asked": asked, "answer": found.model_dump(mode="json")}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _policies_in(read: object, tenant_name: str) -> object:
    """Return the policies of a file: all of it, those below their key, or those of a tenant of a configuration."""
    if isinstance(read, Mapping) and "tenants" in read:
        for key in ("tenants", tenant_name, "plugin_settings"):
            read = read.get(key) if isinstance(read, Mapping) else None
        return read.get("allocation_policies", {}) if isinstance(read, Mapping) else None
    return read["allocation_policies"] if isinstance(read, Mapping) and "allocation_policies" in read else read


def _simulated(tenant: Tenant, trial: Trial, by: Sequence[str]) -> SimulationAnswer:
    """Return what the policies would make of the days, or end with an error."""
    from chargeback.cli.progress import ProgressDisplay
    from chargeback.errors import NothingGathered, NothingToSimulate, UnknownCategory
    from chargeback.pipeline.run_messages import Progress, Stage
    from chargeback.pipeline.simulations import simulated

    with ProgressDisplay() as display:

        def _show(done: int, total: int) -> None:
            display(Progress(tenant.name, Stage.CALCULATING, done=done, total=total))

        try:
            return simulated(tenant, trial, by, _show)
        except (NothingGathered, NothingToSimulate) as error:
            failed(error)
        except (UnknownCategory, ValueError) as error:
            raise typer.BadParameter(str(error), param_hint="--group-by") from None


def _money(amount: Decimal, found: SimulationAnswer) -> str:
    from chargeback.reports.wording import money_text

    return money_text(amount, found.currency)


def _facts(found: SimulationAnswer) -> list[str]:
    """Return in sentences what was simulated, and what was not."""
    days = len(found.base.days)
    unallocated = found.unallocated
    facts = [
        f"{days} days ({found.start_date} to {found.end_date}), {_money(found.billed, found)} billed: "
        f"{_money(found.moved, found)} ({found.moved_share} %) would be charged to others.",
        f"Unallocated: {_money(unallocated.before, found)}, then {_money(unallocated.after, found)}.",
    ]
    causes = {"portions": found.by_cause.portion, "methods": found.by_cause.method, "measures": found.by_cause.measure}
    causes["what is split in proportion to others"] = found.by_cause.proportional
    causes["earlier policies of the same product types"] = found.by_cause.earlier
    causes["cost categories"] = found.by_cause.category
    if moved := [f"{name} {_money(amount, found)}" for name, amount in causes.items() if amount]:
        facts.append(f"By what differs: {', '.join(moved)}.")
    if found.left_out:
        first = found.left_out[0]
        facts.append(f"Not simulated: {len(found.left_out)} days, such as {first.date}: {first.reason}.")
    if found.never_measured:
        facts.append(f"Never measured: {', '.join(found.never_measured)}; what they would split goes to others.")
    if found.never_applied:
        facts.append(f"Not on the bill of these days: {', '.join(found.never_applied)}.")
    if found.corrections:
        months = ", ".join(dict.fromkeys(each.period_id for each in found.corrections))
        facts.append(f"To calculate these days so would post corrections of closed months: {months}.")
    return facts


def _shown(found: SimulationAnswer) -> list[SimulatedSum]:
    """Return the groups that a table has: the largest changes, of a cent or more."""
    from chargeback.model.cents import rounded_cents

    return [each for each in found.items[:_SHOWN] if rounded_cents(each.delta, found.currency)]


def _named(found: SimulationAnswer, column: str, value: str | None) -> str:
    """Return a value with its display name, if it has one."""
    name = found.names.get(column, {}).get(value or "")
    return value or "" if name in {None, value} else f"{name} ({value})"


def _rest(found: SimulationAnswer) -> list[str]:
    """Return in words what the table leaves out."""
    more = len(found.items) - len(_shown(found))
    return [f"and {more} more, which change by less"] if more else []


def _rows(found: SimulationAnswer) -> list[list[str]]:
    return [
        [
            *(_named(found, column, value) for column, value in each.dimensions.items()),
            _money(each.before, found),
            _money(each.after, found),
            f"{'+' if each.delta > 0 else ''}{_money(each.delta, found)}",
            "" if each.percent is None else f"{each.percent:+} %",
        ]
        for each in _shown(found)
    ]


def _columns(found: SimulationAnswer) -> list[str]:
    return [*found.group_by, "before", "after", "change", "percent"]


def _print_table(found: SimulationAnswer, beyond: Sequence[str]) -> None:
    from chargeback.cli.display import print_table

    for fact in _facts(found):
        typer.echo(fact)
    print_table("", _columns(found), _rows(found), numbers=4)
    for rest in _rest(found):
        typer.echo(rest)
    for each in beyond:
        typer.echo(f"beyond the limits: {each}", err=True)


def _print_json(found: SimulationAnswer, _beyond: Sequence[str]) -> None:
    typer.echo(found.model_dump_json(indent=2))


def _print_markdown(found: SimulationAnswer, beyond: Sequence[str]) -> None:
    """The first lines are always the same, so that a comment on a pull request can be found and replaced."""
    columns = _columns(found)
    lines = ["<!-- chargeback simulate -->", "### What this would move", ""]
    lines += [f"- {fact}" for fact in _facts(found)]
    lines += [f"- **Beyond the limits:** {each}" for each in beyond]
    lines += ["", f"| {' | '.join(columns)} |", f"|{'|'.join([*(['---'] * len(found.group_by)), *(['--:'] * 4)])}|"]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in _rows(found)]
    lines += [f"| {' | '.join(row)} |" for row in escaped]
    lines += ["", *_rest(found)]
    typer.echo("\n".join(lines))


_PRINT: Final[Mapping[str, Callable[[SimulationAnswer, Sequence[str]], None]]] = {
    "table": _print_table,
    "json": _print_json,
    "markdown": _print_markdown,
}
