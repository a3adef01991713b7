"""A tenant at a glance: what there is, and how the last runs went."""

from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import RowMapping
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.conditional import ControlDep
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import query
from chargeback.api.reasons import told_reason
from chargeback.api.responses import json_response
from chargeback.api.routes.tenants import tenant_settings
from chargeback.api.schemas.overview import RunList, RunsQuery, TenantOverview
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.model.days import instants, render_instant
from chargeback.store.control.pipeline_state import pipeline_state
from chargeback.store.control.runs import latest_runs
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.sums import tag_coverage
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Tenants"])

_COVERAGE_DAYS = 30


@router.get("", response_model=TenantOverview, **documented(needs=Right.READ, query=TenantsQuery, etag=True))
async def show_tenant(facts: FactsDep, params: Annotated[TenantsQuery, query(TenantsQuery)]) -> Response:
    """Return one tenant: its days, its tag keys with their share of the cost, its features, and the current run."""
    tenant = facts.tenant
    state = await facts.context.read_control(tenant, pipeline_state)
    failure = told_reason(state.suspended_because, facts.access)
    run = {"stage": state.stage, "date": state.stage_date} if state.is_running else None
    can_run = tenant.pipeline is not None and facts.access.allows(Right.RUN)

    def _make(reader: TenantReader, version: DataVersion) -> Response:
        dates = reader.dates(CHARGEBACKS)
        last = version.control.last_calculated
        return json_response(
            tenant_settings(tenant, facts.access)
            | {
                "currency": tenant.currency,
                "currencies": sorted(tenant.currencies),
                "first_date": dates[0] if dates else None,
                "last_date": last,
                "lookback_days": tenant.lookback_days,
                "permanent_failure": failure,
                "tag_keys": _coverage(reader, last),
                "features": {
                    "can_tag": facts.access.allows(Right.TAG),
                    "can_run": can_run,
                    "topics": tenant.topic_attribution_status == "enabled",
                },
                "run": run,
            }
        )

    return await facts.versioned_answer(params, _make, keep=True, also=[run, failure, can_run])


def _coverage(reader: TenantReader, last: date | None) -> list[dict[str, Any]]:
    keys = reader.visible_tags().keys()
    if last is None:
        return [{"key": key, "coverage": None} for key in keys]
    shares = tag_coverage(reader, instants(last - timedelta(days=_COVERAGE_DAYS - 1), last), keys)
    return [{"key": key, "coverage": None if share is None else f"{share:f}"} for key, share in shares.items()]


@router.get("/runs", response_model=RunList, **documented(needs=Right.READ, whole=True, query=RunsQuery, etag=True))
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
