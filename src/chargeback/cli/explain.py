"""``chargeback explain``: why an identity or a topic has an amount of a billing line, as a page for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chargeback.cli.options import (
    DAY,
    DAY_FORMATS,
    DEFAULT_CONFIG,
    FAILED,
    INSTANT,
    INSTANT_FORMATS,
    ConfigOption,
    failed,
    one_tenant,
)

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.recompute.explain import ExplainKey
    from chargeback.recompute.explain_topic import TopicKey
    from chargeback.store.queries.paging import Page
    from chargeback.store.tenant import TenantStore

#: The width of the page: that of a usual terminal.
WIDTH = 80


def explain(  # noqa: PLR0913, PLR0917 - the options of a command
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.")],
    date: Annotated[datetime, typer.Argument(metavar=DAY, formats=DAY_FORMATS, help="The UTC day of the line.")],
    line: Annotated[str, typer.Argument(metavar="LINE", help="The `line_id` of the billing line.")],
    identity: Annotated[
        str | None,
        typer.Argument(metavar="IDENTITY", help="The identity; also one that is charged nothing. Not with `--topic`."),
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    topic: Annotated[
        str | None, typer.Option(metavar="NAME", help="Explain what this topic of the line's cluster has of the line.")
    ] = None,
    portion: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help="The portion of the line; needed if the identity has several."),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            metavar=INSTANT, formats=INSTANT_FORMATS, help="Explain what was charged at this instant, in UTC."
        ),
    ] = None,
    contenders: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=1, help="How many of those that share the portion are shown, the largest first."
        ),
    ] = 20,
) -> None:
    """Explain what an identity or a topic has of a billing line. Step by step, also why it has nothing."""
    from datetime import UTC

    from chargeback.recompute.explain import ExplainKey
    from chargeback.recompute.explain_topic import TopicKey
    from chargeback.store.queries.paging import Page

    if (identity is None) == (topic is None):
        raise typer.BadParameter("name either an identity or a topic", param_hint="IDENTITY / --topic")
    chosen = one_tenant(config, tenant)
    instant = None if as_of is None else as_of.replace(tzinfo=UTC)
    day = date.date()
    key: ExplainKey | TopicKey
    if topic is not None:
        key = TopicKey(day, line, topic, instant)
    else:
        key = ExplainKey(day, line, identity or "", portion, instant)
    answer = _answer(chosen, key, Page(0, contenders))
    for text in page(answer):
        typer.echo(text)
    if answer["recomputed"] == "different":
        raise typer.Exit(FAILED)


def _answer(tenant: Tenant, key: ExplainKey | TopicKey, page: Page) -> dict[str, Any]:
    """Return the answer of the API, or end with an error."""
    from chargeback.recompute.explain import ExplainKey, PortionNeeded
    from chargeback.recompute.stored_day import LineNotFound
    from chargeback.store.tenant import open_store

    database = tenant.storage.database_file
    if database is not None and not database.exists():
        failed(f"tenant {tenant.name}: no data has been gathered yet")
    with closing(open_store(tenant)) as store:
        try:
            if isinstance(key, ExplainKey):
                return _of_identity(tenant, store, key, page)
            return _of_topic(tenant, store, key, page)
        except PortionNeeded as error:
            failed(f"--portion {error}")
        except LineNotFound as error:
            failed(f"tenant {tenant.name}: {error}")


def _of_identity(tenant: Tenant, store: TenantStore, key: ExplainKey, page: Page) -> dict[str, Any]:
    from chargeback.recompute.explain import explain as explain_amount
    from chargeback.recompute.rules import AllocationRules, present_tenant
    from chargeback.reports.explain.charges import explained_charge, names_of_explanation

    found = explain_amount(store, AllocationRules.of(present_tenant(tenant, store.control)), key)
    with store.control.read() as connection:
        names = names_of_explanation(connection, found, page)
    return explained_charge(found, names, tenant.settings.currency, page).model_dump(mode="json")


def _of_topic(tenant: Tenant, store: TenantStore, key: TopicKey, page: Page) -> dict[str, Any]:
    from chargeback.recompute.explain_topic import explain_topic_row
    from chargeback.recompute.rules import topic_plan
    from chargeback.reports.explain.topics import cluster_names, explained_topic

    plan = topic_plan(tenant)
    if plan is None:
        failed(f"tenant {tenant.name}: topic attribution is not enabled")
    found = explain_topic_row(store, plan, key)
    with store.control.read() as connection:
        names = cluster_names(connection, found)
    return explained_topic(found, names, tenant.settings.currency, page).model_dump(mode="json")


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
    if "topic_name" in answer:
        yield f"the whole line is attributed to topics: {answer['attribution_method'] or 'unknown'}"
        return
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
    what = "topics" if "topic_name" in answer else "identities"
    for each in answer["methods"]:
        outcome = "applied" if each["applied"] else each["why_not"]
        yield f"{each['position']}. {each['method']}: {outcome} ({each['candidates']} {what})"


def _evidence(answer: Mapping[str, Any]) -> Iterator[str]:
    evidence = answer["evidence"]
    if evidence is None:
        if answer["evidence_missing"]:
            yield f"missing: {answer['evidence_missing']}"
        return
    if evidence["total"] is not None:
        yield f"{evidence['measure'] or 'charged for other lines'}: {evidence['total']} in total"
    kind = "topic_name" if "topic_name" in answer else "identity_id"
    for each in evidence["contenders"]:
        mark = "* " if each[kind] == answer[kind] else ""
        name = f" ({each['name']})" if each.get("name") else ""
        value = "" if each["value"] is None else f"{each['value']}, "
        yield f"{mark}{each[kind]}{name}: {value}{each['ratio']} of the total"
    if others := evidence["contenders_total"] - len(evidence["contenders"]):
        yield f"and {others} others"


def _arithmetic(answer: Mapping[str, Any]) -> Iterator[str]:
    portion, arithmetic = answer.get("portion"), answer["arithmetic"]
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
