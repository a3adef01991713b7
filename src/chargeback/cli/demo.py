"""``chargeback demo``: generate an organisation, allocate its bill, summarise and serve it, without any account."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import FAILED

if TYPE_CHECKING:
    from decimal import Decimal

    from chargeback.cli.demo_summary import Summary
    from chargeback.config import Configuration, Tenant
    from chargeback.demo.config import ServerInfo
    from chargeback.demo.organisation import DemoSpec
    from chargeback.model.run_request import RunRequest

#: How many identities and product types are shown; the others are summed in one line.
SHOWN = 10

_STOP_SECONDS = 4
#: This long before the day on which the demo was created, one consumer starts to read much more: a jump in cost to
#: find.
_BURST_BEFORE = timedelta(days=14)
#: From this number of days on, one of them may be pending.
_SPARE_DAYS = 7
_HOST = "127.0.0.1"
_MARKER = "began.json"
_QUESTION = "/api/v1/tenants/acme/chargebacks/aggregate?group_by=tag:team&time_bucket=month"
# The bill has a product without a policy, as a real bill may have; the note below explains this instead of a warning.
# So are errors of the run, which the table of results lists, and the late metrics, which are announced.
_LOGGING = (
    "logging: {level: WARNING, per_module_levels: "
    "{chargeback.pipeline.chargebacks: ERROR, chargeback.pipeline.run_context: ERROR, "
    "chargeback.pipeline.supervisor: ERROR, chargeback.sources.prometheus: ERROR}}\n"
)
_NOTE = (
    "Most identities have a tag `team`. CONTEXT_ENGINE_TABLES represents a product without a policy: its cost\n"
    "goes to UNALLOCATED until you add a policy for it. The cost category `cost_center` has nine cost centres, which\n"
    "most of the cost belongs to: docs/cost-categories.md says how to assign the rest."
)

_NOTE_OF_FOCUS = (
    "The bill is files in FOCUS, as AWS exports them for MSK. Most identities have a tag `team`.\n"
    "To read your own files: chargeback init --ecosystem focus, and docs/any-bill.md."
)


def print_summary(summary: Summary) -> None:
    """Print the largest identities and product types, and both totals, with all digits."""
    from chargeback.cli.display import aligned, money_table, print_table
    from chargeback.model.inventory import UNALLOCATED
    from chargeback.model.money import total

    if not summary.days:
        typer.echo(f"tenant {summary.tenant}: no day is calculated yet")
        return
    period = f"{summary.days[0].day} to {summary.days[-1].day}"
    identities = _largest(summary.by_identity)
    rows = zip(
        [identity for identity, _ in identities],
        [summary.names.get(identity, "") for identity, _ in identities],
        aligned([amount for _, amount in identities]),
        strict=True,
    )
    print_table(f"Cost by identity, {period}", ("identity", "name", summary.currency), rows)
    money_table(f"Cost by product type, {period}", "product type", _largest(summary.by_product), summary.currency)
    same = "the same to the last digit" if summary.billed == summary.charged else "NOT THE SAME"
    owned = total([amount for identity, amount in summary.by_identity if identity != UNALLOCATED])
    totals = (("billed", summary.billed), ("charged", summary.charged), ("of it with an owner", owned))
    money_table(f"{len(summary.days)} days: {same}", "total", totals, summary.currency)


def _largest(amounts: tuple[tuple[str, Decimal], ...]) -> list[tuple[str, Decimal]]:
    from chargeback.model.money import total

    shown, rest = list(amounts[:SHOWN]), amounts[SHOWN:]
    if rest:
        shown.append((f"{len(rest)} others", total([amount for _, amount in rest])))
    return shown


class Size(StrEnum):
    """The size of the generated organisation."""

    SMALL = "small"
    USUAL = "usual"
    LARGE = "large"


class Bill(StrEnum):
    """The provider of the generated bill."""

    CONFLUENT = "confluent"
    FOCUS = "focus"


def demo(
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=1, max=65535, help="The port to listen on, on 127.0.0.1.")
    ] = 8080,
    size: Annotated[
        Size, typer.Option("--size", metavar="SIZE", help="The size of the organisation: small, usual, or large.")
    ] = Size.USUAL,
    days: Annotated[
        int, typer.Option("--days", metavar="DAYS", min=6, max=364, help="The number of days with bills.")
    ] = 66,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", metavar="NUMBER", help="The seed of the generator; another seed gives another organisation."
        ),
    ] = 7,
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="The folder for its data.")] = Path(
        "demo-data"
    ),
    no_serve: Annotated[bool, typer.Option("--no-serve", help="Stop after the summary.")] = False,
    bill: Annotated[
        Bill,
        typer.Option(
            "--bill",
            metavar="BILL",
            help="The bill: confluent, or focus for files in FOCUS as AWS exports them for MSK.",
        ),
    ] = Bill.CONFLUENT,
) -> None:
    """Serve a generated organisation. Generate it, allocate its bill, and show who spent what.

    Each combination of size, days and seed has its own folder below --data; the next time, only new days are
    calculated.
    """
    from chargeback.cli.demo_story import tag_teams
    from chargeback.cli.demo_summary import summarise
    from chargeback.cli.http_server import listen
    from chargeback.cli.serve import Mode, serve_until_stopped
    from chargeback.config import load_configuration
    from chargeback.demo.config import CUTOFF_DAYS
    from chargeback.demo.organisation import DemoSpec
    from chargeback.logs import configure_logging
    from chargeback.model.days import utc_today
    from chargeback.model.run_request import RunRequest

    leaving = threading.Event()

    def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the shape of a signal handler
        leaving.set()
        raise SystemExit(FAILED)

    signal.signal(signal.SIGTERM, _leave)  # so that child processes are ended, too
    if not no_serve:
        listen(_HOST, port).close()
    folder = data.absolute() / f"{'' if bill is Bill.CONFLUENT else 'focus-'}{size.value}-{days}-days-seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    typer.echo(f"Generating an organisation ({size.value}, {days} days, seed {seed}) in {folder} ...", err=True)
    today = utc_today()
    began, late_bill = _recorded(folder, today)
    late = _late_day(folder, days, today)
    spec = DemoSpec(today, seed, size.value, days + (today - began).days, began - _BURST_BEFORE)
    with _provider(spec, late, late_bill) as provider:
        file = folder / "chargeback.yaml"
        file.write_text(_LOGGING + _configuration(bill, provider.info, folder, spec, port), encoding="utf-8")
        configuration = load_configuration(file)
        configure_logging(configuration.logging, configuration.secrets())
        typer.echo(
            f"Fetching its bill and metrics over HTTP and allocating {days - CUTOFF_DAYS} of {days} days; "
            f"the last {CUTOFF_DAYS} are not complete yet ...",
            err=True,
        )
        if late is not None:
            typer.echo(
                f"On purpose, the metrics of {late} come two minutes late: this run completes with errors, and the day "
                "is pending until the next run (page Days).",
                err=True,
            )
        test = _announced(configuration, spec) if bill is Bill.CONFLUENT else ""
        _allocate(configuration, RunRequest())
        for tenant in configuration.tenants.values():
            tag_teams(tenant, seed, with_principals=bill is Bill.FOCUS)
            if bill is Bill.CONFLUENT:
                _organise(tenant, seed)
                if late_bill is None:
                    _close_months(configuration, tenant, provider, folder, began)
            print_summary(summarise(tenant))
        typer.echo(_NOTE if bill is Bill.CONFLUENT else _NOTE_OF_FOCUS)
        typer.echo(f"One consumer ran wild for a few days from {began - _BURST_BEFORE} on: find out who.{test}")
        if no_serve or leaving.is_set():  # an exception raised by a signal handler during a callback is lost
            return
        url = f"http://{_HOST}:{port}"
        typer.echo(f"Open {url}/ui/ in a browser. The API: {url}/docs. Ctrl-C stops the service.")
        typer.echo(f"What each team spent:  curl '{url}{_QUESTION}'")
        serve_until_stopped(configuration, Mode.BOTH)


def _recorded(folder: Path, today: date) -> tuple[date, date | None]:
    """Return the day on which the demo in this folder was created, and the day whose bill grew after its month was
    closed (None while there is none); it is the same organisation on later days."""
    try:
        known = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        late_bill = known.get("late_bill")
        return date.fromisoformat(known["began"]), None if late_bill is None else date.fromisoformat(late_bill)
    except (OSError, ValueError, KeyError):
        _record(folder, today, None)
        return today, None


def _record(folder: Path, began: date, late_bill: date | None) -> None:
    days = {"began": began, "late_bill": late_bill}
    known = {name: day.isoformat() for name, day in days.items() if day is not None}
    (folder / _MARKER).write_text(json.dumps(known) + "\n", encoding="utf-8")


def _announced(configuration: Configuration, spec: DemoSpec) -> str:
    """Say that the load test was planned, before its days are known; return a sentence about it, if there is one."""
    from chargeback.cli.demo_story import announce_load_test
    from chargeback.demo.organisation import Organisation

    test = Organisation.generate(spec).load_test
    if test is None:
        return ""
    for tenant in configuration.tenants.values():
        announce_load_test(tenant, test)
    return f" Another one was tested under load from {test.first_day} on, which was announced."


def _organise(tenant: Tenant, seed: int) -> None:
    """Give the tenant cost categories, and budgets of them."""
    from chargeback.cli.demo_story import apply_demo_categories, write_demo_budgets

    apply_demo_categories(tenant, seed)
    write_demo_budgets(tenant)


def _close_months(configuration: Configuration, tenant: Tenant, provider: _Provider, folder: Path, began: date) -> None:
    """Close the months that are complete; then let the bill of one of them grow, which a run posts to the open one."""
    from chargeback.cli.demo_story import close_demo_months, dispute_and_adjust
    from chargeback.model.days import utc_now
    from chargeback.model.run_request import RunRequest

    closed = close_demo_months(tenant, utc_now)
    if closed is None:
        return
    day, months = closed.late_bill, closed.periods
    typer.echo(
        f"Closed {' and '.join(each.name for each in months)}. On purpose, the bill of {day} grows after that: the "
        f"correction is posted to {months[-1].next.name} (page Month end).",
        err=True,
    )
    provider.bill_late(day)
    _record(folder, began, day)
    _allocate(configuration, RunRequest(start=day, end=day))
    dispute_and_adjust(tenant, months[-1], utc_now)


def _late_day(folder: Path, days: int, today: date) -> date | None:
    """Return the newest billed day of a demo that is long enough to spare one, when it is created: its metrics come
    late."""
    from chargeback.demo.config import CUTOFF_DAYS

    is_new = not (folder / "acme.db").exists()
    return today - timedelta(days=CUTOFF_DAYS + 1) if is_new and days - CUTOFF_DAYS >= _SPARE_DAYS else None


def _configuration(bill: Bill, info: ServerInfo, folder: Path, spec: DemoSpec, port: int) -> str:
    """Return the configuration that reads the bill; one in FOCUS is written to files before."""
    from chargeback.demo.config import CUTOFF_DAYS, demo_configuration
    from chargeback.demo.focus_bill import focus_configuration, write_bill
    from chargeback.demo.organisation import Organisation

    organisation = Organisation.generate(spec)
    if bill is Bill.CONFLUENT:
        end = spec.today - timedelta(days=CUTOFF_DAYS + 1)
        billed = organisation.cost_total(spec.today - timedelta(days=spec.days), end)
        return demo_configuration(info, folder, port=port, shadow=True, billed=billed)
    write_bill(organisation, folder / "bill")
    return focus_configuration(info, organisation, folder, folder / "bill", port=port)


@dataclass(frozen=True)
class _Provider:
    """The process that serves the organisation, with its pipes."""

    info: ServerInfo
    stdin: IO[str]
    stdout: IO[str]

    def bill_late(self, day: date) -> None:
        """Let the bill of a day grow."""
        self.stdin.write(f"{day}\n")
        self.stdin.flush()
        self.stdout.readline()


@contextmanager
def _provider(spec: DemoSpec, late: date | None, late_bill: date | None) -> Iterator[_Provider]:
    """Serve the organisation from a separate process, with the provider's API. The metrics of the day ``late`` come
    late, and the bill of the day ``late_bill`` has grown."""
    from chargeback.demo.config import ServerInfo
    from chargeback.errors import SourceUnavailable

    options = {"--size": spec.size, "--seed": spec.seed, "--days": spec.days, "--today": spec.today.isoformat()}
    options["--burst"] = str(spec.burst)
    days = {"--late": late, "--late-bill": late_bill}
    options |= {name: day.isoformat() for name, day in days.items() if day is not None}
    arguments = [str(word) for pair in options.items() for word in pair]
    command = [sys.executable, "-m", "chargeback.demo.server", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    stdin, stdout = process.stdin, process.stdout
    try:
        if stdin is None or stdout is None or not (line := stdout.readline()):
            raise SourceUnavailable("the demo organisation could not be served", source="demo")
        yield _Provider(ServerInfo.from_json(line), stdin, stdout)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _allocate(configuration: Configuration, request: RunRequest) -> None:
    from chargeback.cli.display import print_results
    from chargeback.cli.run import run_in_foreground
    from chargeback.pipeline.run_messages import RunOutcome

    results = run_in_foreground(configuration, list(configuration.tenants), request)
    print_results(results)
    if any(result.outcome in {RunOutcome.FAILED, RunOutcome.TIMED_OUT} for result in results):
        raise typer.Exit(FAILED)
