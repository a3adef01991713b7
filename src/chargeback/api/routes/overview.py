"""A tenant at a glance: what there is, whether it is reconciled, how the last runs went."""

from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import RowMapping
from starlette.responses import Response

from chargeback.api.conditional import ControlDep
from chargeback.api.cost_responses import day_response
from chargeback.api.dependencies import ServicesDep
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import json_response
from chargeback.api.routes.tenants import tenant_settings
from chargeback.api.schemas.costs import MOST_TIMES
from chargeback.api.schemas.overview import Reconciliation, ReconciliationQuery, RunList, RunsQuery, TenantOverview
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.model.days import ONE_DAY, DayRange, instants, render_instant
from chargeback.model.money import render, total
from chargeback.service.reconciliation import reconcile, states_seen
from chargeback.store.control.pipeline_state import pipeline_state
from chargeback.store.control.runs import latest_runs
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_coverage import tag_coverage
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Tenants"])

_COVERAGE_DAYS = 30


@router.get("", response_model=TenantOverview, **documented(query=TenantsQuery, etag=True))
async def show_tenant(
    services: ServicesDep, facts: FactsDep, params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """Return one tenant: its days, its tag keys with their share of the cost, its features, and the current run."""
    tenant = facts.tenant
    state = await facts.context.read_control(tenant, pipeline_state)
    run = {"stage": state.stage, "date": state.stage_date} if state.is_running else None
    can_run = services.mode == "both" and tenant.pipeline is not None

    def _make(reader: TenantReader, version: DataVersion) -> Response:
        dates = reader.dates(CHARGEBACKS)
        last = version.control.last_calculated
        return json_response(
            tenant_settings(tenant)
            | {
                "currency": tenant.currency,
                "first_date": dates[0] if dates else None,
                "last_date": last,
                "lookback_days": tenant.lookback_days,
                "permanent_failure": state.suspended_because,
                "tag_keys": _coverage(reader, last),
                "features": {
                    "can_tag": True,
                    "can_run": can_run,
                    "topics": tenant.topic_attribution_status == "enabled",
                },
                "run": run,
            }
        )

    return await facts.versioned_answer(params, _make, keep=True, also=[run, state.suspended_because, can_run])


def _coverage(reader: TenantReader, last: date | None) -> list[dict[str, Any]]:
    keys = reader.tags.keys()
    if last is None:
        return [{"key": key, "coverage": None} for key in keys]
    shares = tag_coverage(reader, instants(last - timedelta(days=_COVERAGE_DAYS - 1), last), keys)
    return [{"key": key, "coverage": None if share is None else f"{share:f}"} for key, share in shares.items()]


@router.get("/reconciliation", response_model=Reconciliation, **documented(query=ReconciliationQuery, etag=True))
async def show_reconciliation(
    facts: FactsDep, params: Annotated[ReconciliationQuery, query(ReconciliationQuery)]
) -> Response:
    """Compare the bill of each UTC day with the charges of that day, exactly. `timezone` is ignored."""
    tenant = facts.tenant

    def _make(reader: TenantReader, version: DataVersion) -> Response:
        period = params.chosen_period(tenant.lookback_days, version.control.last_calculated)
        if period.days > MOST_TIMES:
            wrong = f"should be at most {MOST_TIMES} days before the end"
            raise InvalidRequest([InvalidParameter("start_date", wrong)])
        with tenant.store.control.read() as connection:
            states = states_seen(reader, connection)
        days = reconcile(reader, states, DayRange(period.start, period.end + ONE_DAY))
        billed, charged = total(day.billed for day in days), total(day.charged for day in days)
        return json_response(
            {
                "start_date": period.start,
                "end_date": period.end,
                "currency": tenant.currency,
                "total": {
                    "billed": render(billed),
                    "charged": render(charged),
                    "difference": render(total([charged, billed.copy_negate()])),
                },
                "days": [
                    day_response(day)
                    | {
                        "fingerprint": day.fingerprint,
                        "gathered_at": None if day.gathered_at is None else render_instant(day.gathered_at),
                    }
                    for day in days
                ],
            }
        )

    return await facts.versioned_answer(params, _make, keep=True)


@router.get("/runs", response_model=RunList, **documented(query=RunsQuery, etag=True))
async def list_runs(control: ControlDep, params: Annotated[RunsQuery, query(RunsQuery)]) -> Response:
    """Return the last runs, newest first, including the current one. Runs are kept for 90 days."""
    return await control.of_anything(
        lambda connection: json_response({"items": [_run(row) for row in latest_runs(connection, params.limit)]})
    )


def _run(row: RowMapping) -> dict[str, Any]:
    return {
        "run_id": str(row["run_id"]),
        "status": row["outcome"],
        "started_at": render_instant(row["started_at"]),
        "completed_at": None if row["ended_at"] is None else render_instant(row["ended_at"]),
        "dates_gathered": row["dates_gathered"],
        "dates_calculated": row["dates_calculated"],
        "chargeback_rows_written": row["chargeback_rows_written"],
        "errors": row["errors"],
    }
