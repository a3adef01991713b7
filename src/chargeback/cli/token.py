"""``chargeback token``: tokens for machines."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chargeback.cli.options import DEFAULT_CONFIG, ConfigOption, TenantName, failed, opened_storage

if TYPE_CHECKING:
    from chargeback.access.caller import Right
    from chargeback.access.scope import RowScope
    from chargeback.store.control.access_tokens import AccessToken

app = typer.Typer(help="Create, list and revoke tokens for machines.", no_args_is_help=True, rich_markup_mode=None)


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_DURATION: Final = re.compile(r"([1-9][0-9]{0,4})([hd])")
_NEVER: Final = "never"


@app.command()
def create(
    tenant: TenantName,
    name: Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="What the audit log calls the machine.")],
    allow: Annotated[str, typer.Option("--allow", metavar="RIGHTS", help="Rights, as in: read,export.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="CONDITION",
            help="Only rows with one of these values, as in: category:cost_center=payments,checkout. Rows have to meet "
            "all conditions if there are several.",
        ),
    ] = None,
    expires: Annotated[str, typer.Option("--expires", metavar="TIME", help="When it ends: 90d, 12h or never.")] = "90d",
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Create a token and print it, once: it is not stored."""
    from chargeback.model.days import utc_now
    from chargeback.store.control.access_tokens import TokenWrite, create_token, new_token
    from chargeback.store.control.audit import COMMAND_LINE

    if not _NAME.fullmatch(name):
        raise typer.BadParameter("at most 64 letters, digits, `_`, `.` and `-`", param_hint="--name")
    now = utc_now()
    write = TokenWrite(name, _rights(allow), _scope(scope or []), _end(expires, now))
    with opened_storage(tenant, config) as store:
        token = new_token(store.tenant_name)
        with store.control.write(durable=True) as connection:
            created = create_token(connection, token, write, who=COMMAND_LINE, now=now)
    if created is None:
        failed(f"tenant {tenant}: there is a token {name}; revoke it, or choose another name")
    typer.echo(f"{_described(created)}. It is shown only now; send it as `Authorization: Bearer …`.", err=True)
    typer.echo(token)


@app.command("list")
def list_(
    tenant: TenantName,
    config: ConfigOption = DEFAULT_CONFIG,
    every: Annotated[bool, typer.Option("--all", help="Also those that were revoked or have expired.")] = False,
) -> None:
    """List the tokens of a tenant, without the tokens themselves."""
    from chargeback.cli.display import print_table
    from chargeback.model.days import utc_now
    from chargeback.store.control.access_tokens import list_tokens

    with opened_storage(tenant, config) as store, store.control.read() as connection:
        tokens = list_tokens(connection)
    now = utc_now()
    columns = ("name", "allows", "scope", "created", "by", "expires", "last used", "state")
    rows = [_row(token, now) for token in tokens if every or token.holds(now)]
    if not rows:
        typer.echo(f"tenant {tenant}: no token")
        return
    print_table("", columns, rows)


@app.command()
def revoke(
    tenant: TenantName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the token.")],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Revoke a token; it is refused from the next request on."""
    from chargeback.model.days import utc_now
    from chargeback.store.control.access_tokens import revoke_token
    from chargeback.store.control.audit import COMMAND_LINE

    with opened_storage(tenant, config) as store, store.control.write(durable=True) as connection:
        found = revoke_token(connection, name, who=COMMAND_LINE, now=utc_now())
    if not found:
        failed(f"tenant {tenant}: there is no token {name} to revoke")
    typer.echo(f"token {name} of tenant {tenant} is revoked")


def _rights(text: str) -> frozenset[Right]:
    from chargeback.access.caller import Right

    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in set(Right)]
    if unknown:
        message = f"there is no right {', '.join(map(repr, unknown))}; there are {', '.join(Right)}"
        raise typer.BadParameter(message, param_hint="--allow")
    return frozenset(map(Right, names))


def _scope(written: list[str]) -> RowScope | None:
    from chargeback.access.scope import RowScope
    from chargeback.model.texts import separated_values

    conditions: dict[str, list[str]] = {}
    for condition in written:
        name, _, values = condition.partition("=")
        found = sorted({value for part in separated_values([values]) if (value := part.strip())})
        if not found:
            raise typer.BadParameter(f"{condition!r} has no value; as in: {name}=payments", param_hint="--scope")
        if name in conditions:
            raise typer.BadParameter(f"{name} occurs twice; write all values after one =", param_hint="--scope")
        conditions[name] = found
    try:
        return RowScope.of(conditions) if conditions else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--scope") from None


def _end(text: str, now: datetime) -> datetime | None:
    if text == _NEVER:
        return None
    found = _DURATION.fullmatch(text)
    if found is None:
        raise typer.BadParameter("a number of days or hours, such as 90d or 12h, or never", param_hint="--expires")
    number = int(found[1])
    return now + (timedelta(days=number) if found[2] == "d" else timedelta(hours=number))


def _described(token: AccessToken) -> str:
    """Return what a token allows, and until when, in words."""
    rows = "all rows" if token.scope is None else f"rows with {_conditions(token)}"
    until = "until it is revoked" if token.expires_at is None else f"until {_instant(token.expires_at)}"
    return f"token {token.name}: {', '.join(sorted(token.rights))} on {rows}, {until}"


def _row(token: AccessToken, now: datetime) -> tuple[str, ...]:
    state = "valid" if token.holds(now) else "expired" if token.revoked_at is None else "revoked"
    return (
        token.name,
        ",".join(sorted(token.rights)),
        _conditions(token) or "all rows",
        _instant(token.created_at),
        token.created_by,
        _NEVER if token.expires_at is None else _instant(token.expires_at),
        "" if token.last_used_at is None else _instant(token.last_used_at),
        state,
    )


def _conditions(token: AccessToken) -> str:
    conditions = {} if token.scope is None else token.scope.as_json()
    return " and ".join(f"{name}={','.join(values)}" for name, values in conditions.items())


def _instant(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
