"""``chargeback explain``: why an identity is charged an amount for a billing line, as a page for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chargeback.cli.exit_codes import FAILED
from chargeback.cli.options import DAY_FORMATS, DEFAULT_CONFIG, ConfigOption, chosen_tenants

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.recompute.explain import ExplainKey

#: The width of the page: that of a usual terminal.
WIDTH = 80
#: How many contenders are shown.
SHOWN = 10

_INSTANT_FORMATS = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]


def explain(
    tenant: Annotated[str, typer.Argument(help="The tenant's name.")],
    date: Annotated[datetime, typer.Argument(formats=DAY_FORMATS, help="The UTC day of the line.")],
    line: Annotated[str, typer.Argument(help="The `line_id` of the billing line.")],
    identity: Annotated[str, typer.Argument(help="The identity; also one that is charged nothing.")],
    config: ConfigOption = DEFAULT_CONFIG,
    portion: Annotated[
        int | None, typer.Option(min=1, help="The portion of the line; needed if the identity has several.")
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(formats=_INSTANT_FORMATS, help="Explain what was charged at this instant, in UTC."),
    ] = None,
) -> None:
    """Explain step by step what an identity is charged for a billing line, or why it is charged nothing."""
    from datetime import UTC

    from chargeback.config import load_configuration
    from chargeback.recompute.explain import ExplainKey

    (chosen,) = chosen_tenants(load_configuration(config), [tenant])
    instant = None if as_of is None else as_of.replace(tzinfo=UTC)
    answer = _answer(chosen, ExplainKey(date.date(), line, identity, portion, instant))
    for text in page(answer):
        typer.echo(text)
    if answer["recomputed"] == "different":
        raise typer.Exit(FAILED)


def _answer(tenant: Tenant, key: ExplainKey) -> dict[str, Any]:
    """Return the answer of the API, or end with an error."""
    from chargeback.recompute.explain import AllocationRules, LineNotFound, PortionNeeded
    from chargeback.recompute.explain import explain as explain_amount
    from chargeback.service.explanation import ExplanationNames, explanation_json
    from chargeback.store.tenant import open_store

    database = tenant.storage.database_file
    if database is not None and not database.exists():
        typer.echo(f"error: tenant {tenant.name}: no data has been gathered yet", err=True)
        raise typer.Exit(FAILED)
    with closing(open_store(tenant)) as store:
        try:
            found = explain_amount(store, AllocationRules.of(tenant), key)
        except PortionNeeded as error:
            typer.echo(f"error: --portion {error}", err=True)
            raise typer.Exit(FAILED) from None
        except LineNotFound as error:
            typer.echo(f"error: tenant {tenant.name}: {error}", err=True)
            raise typer.Exit(FAILED) from None
        with store.control.read() as connection:
            names = ExplanationNames.read(connection, found)
    return explanation_json(found, names, tenant.settings.currency)


def page(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the page; each has at most :data:`WIDTH` characters, unless an id is longer."""
    yield from textwrap.wrap(answer["sentence"], WIDTH)
    for title, lines in (
        ("Line", _line(answer)),
        ("Policy", _policy(answer)),
        ("Methods", _methods(answer)),
        ("Evidence", _evidence(answer)),
        ("Arithmetic", _arithmetic(answer)),
        ("Revisions", _revisions(answer)),
    ):
        texts = list(lines)
        if texts:
            yield ""
            yield title
            for text in texts:
                yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _line(answer: Mapping[str, Any]) -> Iterator[str]:
    line, siblings = answer["line"], answer["siblings"]
    if line is None:
        yield "the bill of this day is lost"
        return
    name = f" ({line['resource_name']})" if line["resource_name"] else ""
    yield f"{line['product_type']} on {line['resource_id']}{name}: {line['total_cost']} {line['currency']}"
    if line["quantity"] is not None and line["unit_price"] is not None:
        yield f"{line['quantity']} {line['unit'] or 'units'} at {line['unit_price']} {line['currency']}"
    equal = "which is exactly its cost" if siblings["equals_line"] else "which is NOT its cost"
    yield f"its {siblings['rows']} rows sum to {siblings['sum']} {line['currency']}, {equal}"


def _policy(answer: Mapping[str, Any]) -> Iterator[str]:
    policy = answer["policy"]
    if policy is None:
        yield "not recorded"
        return
    yield f"{policy['matched'] or policy['product_type']}, {policy['source']}, hash {policy['hash']}"
    for portion in policy["portions"]:
        mark = " <- this one" if answer["portion"] and portion["number"] == answer["portion"]["number"] else ""
        methods = ", else ".join(portion["methods"])
        yield f"portion {portion['number']}: {portion['share']} of the cost by {methods}{mark}"


def _methods(answer: Mapping[str, Any]) -> Iterator[str]:
    for each in answer["methods"]:
        outcome = "applied" if each["applied"] else each["why_not"]
        yield f"{each['position']}. {each['method']}: {outcome} ({each['candidates']} identities)"


def _evidence(answer: Mapping[str, Any]) -> Iterator[str]:
    evidence = answer["evidence"]
    if evidence is None:
        if answer["evidence_missing"]:
            yield f"missing: {answer['evidence_missing']}"
        return
    if evidence["total"] is not None:
        yield f"{evidence['measure'] or 'charged for other lines'}: {evidence['total']} in total"
    contenders, asked = evidence["contenders"], answer["identity_id"]
    shown = [each for n, each in enumerate(contenders) if n < SHOWN or each["identity_id"] == asked]
    for each in shown:
        mark = "* " if each["identity_id"] == asked else ""
        name = f" ({each['name']})" if each["name"] else ""
        value = "" if each["value"] is None else f"{each['value']}, "
        yield f"{mark}{each['identity_id']}{name}: {value}{each['ratio']} of the total"
    if others := evidence["contenders_total"] - len(shown):
        yield f"and {others} others"


def _arithmetic(answer: Mapping[str, Any]) -> Iterator[str]:
    portion, arithmetic = answer["portion"], answer["arithmetic"]
    if portion is not None:
        yield f"portion {portion['number']}: {portion['share']} of the line is {portion['amount']}"
    if arithmetic is None:
        if answer["why_nothing"]:
            yield f"nothing: {answer['why_nothing']}"
        return
    yield f"exact share: {arithmetic['exact']} units of 10^-12"
    spare = "gets one" if arithmetic["extra_unit"] else "gets none"
    yield (
        f"rounded down: {arithmetic['units_floor']}; {arithmetic['spare_units']} units remain, "
        f"its remainder is number {arithmetic['remainder_rank']}, so it {spare}"
    )
    stored = {"same": "the same as stored", "different": "DIFFERENT from what is stored"}[answer["recomputed"]]
    yield f"amount: {arithmetic['amount']}, {stored}"


def _revisions(answer: Mapping[str, Any]) -> Iterator[str]:
    for each in answer["revisions"]:
        amount = "no longer kept" if each["amount"] is None else each["amount"]
        yield f"{each['revision']}. {each['calculated_at']}, {each['cause'].replace('_', ' ')}: {amount}"
