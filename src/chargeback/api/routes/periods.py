"""Months: previews of their closing, closing and reopening them, and the receipts."""

import decimal
from dataclasses import asdict
from datetime import date
from typing import Annotated, Literal

from fastapi import Body, Path, Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.parameters import (
    AmountText,
    CommonParameters,
    Day,
    FactsParameters,
    Note,
    PeriodId,
    StrictModel,
    Text,
    When,
)
from chargeback.api.problems import InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import csv_response, json_response
from chargeback.api.routes.journal import Month
from chargeback.api.routes.statements import By, Value
from chargeback.api.routing import CSV, Routes
from chargeback.api.tenant_requests import Change, ChangeRequest, Control, Facts, FactsRequest, before_the_books
from chargeback.errors import AdjustmentInvalid, PeriodRefused
from chargeback.model.accounting import AccountingPeriod
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.reports.closing.adjusting import adjust, check_adjustment, end, reverse
from chargeback.reports.closing.close import ClosingOrder, close, reopen
from chargeback.reports.closing.preview import (
    ClosingPreview,
    PeriodItem,
    PeriodList,
    PeriodTotals,
    list_periods,
    prepare,
)
from chargeback.reports.closing.sealing import seal
from chargeback.store.control.adjustments import (
    Adjustment,
    AdjustmentKind,
    NewAdjustment,
    adjustments_of,
    read_adjustments,
)
from chargeback.store.control.catalogue import touch
from chargeback.store.control.closings import read_books, read_receipt, read_receipts, read_signatures
from chargeback.store.control.invoices import Invoice, read_invoices, remove_invoice, save_invoice
from chargeback.store.queries.posted import PostedReader

Amount = Annotated[AmountText, Field(examples=["250.00"])]
Key = Annotated[
    Text | None,
    Field(
        description="A request with the same key returns the same response, and nothing is done twice.",
        examples=["2026-10-close"],
    ),
]
_NOT_CLOSABLE = {
    409: "The month cannot be closed (`period-blocked`, with `blockers`), the amounts differ from the preview "
    "(`preview-stale`, with what has `moved` since `looked_at`), or it is not the month to close next.",
}
_NO_PERIOD = {404: "There is no such tenant or month."}


class MonthQuery(FactsParameters):
    """Parameters of months."""


class PreviewQuery(FactsParameters):
    """Parameters of a preview."""

    by: By | None = Field(default=None, description="Only this grouping, one of `closing.by`.")


class CloseBody(StrictModel):
    """Parameters of a closing."""

    note: Note | None = Field(default=None, description="Stored in the receipt.", examples=["Closed after review"])
    expected_digest: Text | None = Field(
        default=None,
        description="The `digest` of the reviewed preview. If the amounts have changed since, the response is 409.",
    )
    looked_at: When | None = Field(
        default=None,
        description="The `as_of` of the reviewed preview. A refusal then lists the changes since.",
        examples=["2026-11-03T09:12:00Z"],
    )
    accept: list[Text] = Field(
        default=[], max_length=100, description="The blockers that are accepted, by their `id`, or all of one `kind`."
    )
    reason: Note | None = Field(default=None, description="Why they are accepted; needed with `accept`.")
    idempotency_key: Key = None


class ReasonBody(StrictModel):
    """The reason for which a month is reopened or sealed."""

    reason: Note = Field(description="Stored in the receipt.", examples=["The provider has sent a corrected invoice"])


class ClosingReceipt(ResponseModel):
    """An entry of the books: a month was closed, reopened or sealed."""

    n: int = Field(description="From 1, one more with each entry.")
    kind: Literal["closed", "reopened", "sealed", "requested"]
    period_id: str = Field(examples=["2026-10"])
    start: date
    end: date
    at: Instant
    by: str = Field(examples=["alice"])
    digest: str | None = Field(description="The digest of the amounts that were booked, or would be.")
    receipt_digest: str | None = Field(
        description="The SHA-256 of the receipt; null for a request that is not confirmed."
    )


class SignatureItem(ResponseModel):
    """The signature of a receipt (Ed25519, RFC 8032)."""

    n: int = Field(description="The number of the receipt.")
    public_key: str = Field(description="The key that verifies it: 32 bytes, in base64.")
    signature: str = Field(description="The signature: 64 bytes, in base64.")


class SignatureList(ResponseModel):
    """The signatures of receipts, the first one first."""

    items: list[SignatureItem]


class AdjustmentBody(StrictModel):
    """An amount that is manually added to a value, or moved to it."""

    period: PeriodId
    until: PeriodId | None = Field(
        default=None, description="The last month that has it. Default: `period`, or no end with `recurring`."
    )
    recurring: bool = Field(default=False, strict=True, description="Whether every month from `period` on has it.")
    by: By
    value: Value
    from_value: Value | None = Field(
        default=None,
        alias="from",
        description="The value from which the amount is moved, so that the sum stays the same.",
    )
    amount: Amount = Field(description="In the currency of the bill, in whole cents unless `exact`.")
    kind: AdjustmentKind = Field(description="`reallocation` has `from`; the others add to the booked amount.")
    applies_to: PeriodId | None = Field(
        default=None, description="The month to which it applies, if it is another one."
    )
    reason: Note = Field(description="Shown in the statement.", examples=["Shared connector of October"])
    reference: Note | None = Field(default=None, description="A reference, such as a ticket.", examples=["TICKET-42"])
    exact: bool = Field(default=False, strict=True, description="Whether the amount may have parts of a cent.")
    idempotency_key: Key = None


class AdjustmentItem(ResponseModel):
    """An adjustment."""

    id: int
    period_id: str = Field(description="The first month that has it.", examples=["2026-11"])
    until: str | None = Field(description="The last month that has it; null without an end.", examples=["2026-11"])
    by: str = Field(examples=["category:cost_center"])
    value: str = Field(examples=["payments"])
    from_value: str | None = Field(serialization_alias="from")
    amount: Exact
    kind: str = Field(examples=["reallocation"])
    applies_to: str | None
    reason: str
    reference: str | None
    reverses: int | None = Field(description="The adjustment that it reverses.")
    created_by: str
    created_at: Instant
    removed_at: Instant | None

    @classmethod
    def made(cls, found: Adjustment) -> "AdjustmentItem":
        """Return an adjustment for a response."""
        its = found.made
        return cls(
            id=found.id,
            period_id=its.period.id,
            until=None if its.until is None else its.until.id,
            by=its.grouping,
            value=its.value,
            from_value=its.from_value,
            amount=its.amount,
            kind=its.kind,
            applies_to=None if its.applies_to is None else its.applies_to.id,
            reason=its.reason,
            reference=its.reference,
            reverses=its.reverses,
            created_by=found.created_by,
            created_at=found.created_at,
            removed_at=found.removed_at,
        )


class AdjustmentList(ResponseModel):
    """The adjustments of a month, or of all."""

    items: list[AdjustmentItem]


class AdjustmentQuery(CommonParameters):
    """Parameters of the list of adjustments."""

    period: PeriodId | None = Field(default=None, description="Only adjustments of this month.")


class ReverseBody(StrictModel):
    """Parameters of the reversal of an adjustment."""

    period: PeriodId
    reason: Note = Field(description="Shown in the statement.", examples=["Booked twice"])


class InvoiceLine(StrictModel):
    """A line of an invoice."""

    product_type: Text = Field(description="As on the bill.", examples=["KAFKA_NUM_CKUS"])
    amount: Amount


class InvoiceBody(StrictModel):
    """An invoice of the provider."""

    issuer: Note = Field(description="The sender of the invoice.", examples=["Confluent, Inc."])
    kind: Literal["invoice", "credit_memo", "marketplace", "support"] = Field(
        description="The amounts of a credit memo are subtracted from the sum, regardless of their signs."
    )
    status: Literal["open", "issued", "voided"] = Field(description="Voided invoices do not count.")
    references: Text | None = Field(default=None, description="The invoice that it corrects.")
    issued: Day | None = Field(default=None, description="Its date.")
    due: Day | None = Field(default=None, description="When it is to be paid.")
    currency: Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")] = Field(
        description="The currency of the bill.", examples=["USD"]
    )
    total: Amount = Field(description="With tax.")
    tax: Amount | None = Field(default=None, description="The tax in the amount.")
    lines: list[InvoiceLine] = Field(
        default=[], max_length=1000, description="The lines; with them, the bill is also compared by product type."
    )


class InvoiceItem(ResponseModel):
    """An invoice."""

    period_id: str = Field(examples=["2026-10"])
    invoice_id: str = Field(examples=["INV-1042"])
    issuer: str
    kind: str
    status: str
    references: str | None
    issued: date | None
    due: date | None
    currency: str
    total: Exact
    tax: Exact | None
    lines: list[dict[str, str]]
    who: str
    at: Instant


class InvoiceList(ResponseModel):
    """The invoices of a month."""

    items: list[InvoiceItem]


router = Routes(prefix="/tenants/{tenant_name}", tags=["Months"])

InvoiceId = Annotated[str, Path(description="The number of the invoice.", max_length=255, pattern=r"^[^\x00]+$")]
Number = Annotated[str, Path(description="The number of the adjustment.", pattern="^[0-9]{1,9}$")]


@router.get("/periods", needs=Right.READ, whole=True, also=lambda request, _: request.now.date(), files=CSV)
def show_periods(request: Facts, params: Annotated[MonthQuery, Query()]) -> PeriodList | Response:
    """List the months with their states and sums, the newest first. Dates, `timezone` and page parameters are
    ignored."""
    found = list_periods(request.tenant, _posted(request, params), request.now)
    if request.wants_csv:
        rows = [each.model_dump() | each.totals.model_dump() for each in found.items]
        amounts = tuple(PeriodTotals.model_fields)
        columns = ("period_id", "start", "end", "state", *amounts, "closed_at", "digest")
        return csv_response("periods.csv", columns, rows, numbers=amounts)
    return found


@router.get("/periods/{period}", needs=Right.READ, whole=True, problems=_NO_PERIOD)
def show_period(request: Facts, period: Month, params: Annotated[MonthQuery, Query()]) -> PeriodItem:
    """Return a month with its state and sums."""
    found = list_periods(request.tenant, _posted(request, params), request.now)
    item = next((each for each in found.items if each.period_id == period), None)
    if item is None:
        raise NotFound(f"There is no month {period}: {found.items[-1].period_id} is the first one.")
    return item


@router.get("/periods/{period}/closing-preview", needs=Right.READ, whole=True, problems=_NO_PERIOD)
def preview_closing(request: Facts, period: Month, params: Annotated[PreviewQuery, Query()]) -> ClosingPreview:
    """Return what closing a month would book: its sums, the amount of each value, corrections of earlier months,
    adjustments, invoices, and blockers. Nothing is written."""
    with before_the_books("period"):
        month = AccountingPeriod.named(period)
        answer = prepare(request.tenant, _posted(request, params), month, request.now).answer
    if params.by is None:
        return answer
    chosen = [each for each in answer.by if each.by == params.by]
    if not chosen:
        raise NotFound(f"Statements are not stored by {params.by}, but by {', '.join(each.by for each in answer.by)}.")
    return answer.model_copy(update={"by": chosen})


@router.post(
    "/periods/{period}/close",
    response_model=ClosingReceipt,
    needs=Right.CLOSE,
    whole=True,
    answer="The month is closed.",
    problems=_NOT_CLOSABLE,
    responses={
        202: {"description": "A second person has to confirm it (`closing.approval`).", "model": ClosingReceipt}
    },
)
def close_period(
    request: Change, caller: CallerDep, period: Month, new: Annotated[CloseBody, Body(default_factory=CloseBody)]
) -> Response:
    """Close a month: its booked amounts never change, and later changes of its costs are posted to the first open
    month. Months are closed in order; the first closing determines the first month of the books."""
    order = ClosingOrder(
        AccountingPeriod.named(period),
        caller.name,
        new.note,
        new.expected_digest,
        new.looked_at,
        tuple(new.accept),
        new.reason,
        new.idempotency_key,
    )
    done = close(request.ruled(), request.posted_reader, request.writing, order, lambda: request.now)
    if done.closing is None:
        waits = done.request
        if waits is None:
            raise PeriodRefused(f"{period} was neither closed nor requested")
        receipt = ClosingReceipt(
            n=0,
            kind="requested",
            period_id=period,
            start=order.period.start,
            end=order.period.last_day,
            at=waits.requested_at,
            by=waits.requested_by,
            digest=waits.digest,
            receipt_digest=None,
        )
        return json_response(receipt, status=202)
    return json_response(_receipt(request, done.closing.n, done.closing.digest))


@router.post(
    "/periods/{period}/reopen",
    needs=Right.ADMIN,
    whole=True,
    answer="The month is open again.",
    problems={409: "It is not the latest closed month, or it is sealed."},
)
def reopen_period(
    request: Change, caller: CallerDep, period: Month, new: Annotated[ReasonBody, Body()]
) -> ClosingReceipt:
    """Open the latest closed month again. Its receipt and its documents stay; the next closing supersedes them."""
    month = AccountingPeriod.named(period)
    done = reopen(request.tenant, request.writing, month, caller.name, new.reason, lambda: request.now)
    return _receipt(request, done.n, done.digest)


@router.post(
    "/periods/{period}/seal",
    needs=Right.ADMIN,
    whole=True,
    answer="The month is sealed.",
    problems={409: "It is not closed, or it is sealed already."},
)
def seal_period(
    request: Change, caller: CallerDep, period: Month, new: Annotated[ReasonBody, Body()]
) -> ClosingReceipt:
    """Seal a closed month: it cannot be reopened, and later changes of its costs are not posted any more."""
    month = AccountingPeriod.named(period)
    done = seal(request.tenant, request.writing, month, caller.name, new.reason, lambda: request.now)
    return _receipt(request, done.n, done.digest)


@router.get(
    "/closings.jsonl",
    response_class=Response,
    needs=Right.READ,
    whole=True,
    responses={
        200: {
            "description": "One receipt in each line; `previous` is the SHA-256 of the line before.",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    },
)
def show_receipts(request: Control, _params: Annotated[CommonParameters, Query()]) -> Response:
    """Return the receipts of all closings, reopenings and seals, each in a line of canonical JSON that can be checked
    with `sha256sum`."""
    text = "".join(f"{each}\n" for each in read_receipts(request.connection))
    return Response(text, media_type="application/x-ndjson")


@router.get("/closings/signatures", needs=Right.READ, whole=True)
def list_signatures(request: Control, _params: Annotated[CommonParameters, Query()]) -> SignatureList:
    """List the signatures of receipts. Each is that of a line of `closings.jsonl`, without its end, by the private key
    of the tenant (`closing.signing_key`); receipts that were written without one have none."""
    found = read_signatures(request.connection).items()
    return SignatureList(items=[SignatureItem(n=n, **asdict(each)) for n, each in found])


@router.get("/adjustments", needs=Right.READ, whole=True)
def list_adjustments(request: Control, params: Annotated[AdjustmentQuery, Query()]) -> AdjustmentList:
    """List adjustments, the first one first; without a month, removed ones as well."""
    found = read_adjustments(request.connection)
    if params.period is not None:
        period = AccountingPeriod.named(params.period)
        found = adjustments_of(found, period, read_books(request.connection).closed_at(period))
    return AdjustmentList(items=[AdjustmentItem.made(each) for each in found])


@router.post(
    "/adjustments",
    status_code=201,
    needs=Right.CLOSE,
    whole=True,
    answer="The adjustment.",
    problems={409: "The month is closed."},
)
def add_adjustment(request: Change, caller: CallerDep, new: Annotated[AdjustmentBody, Body()]) -> AdjustmentItem:
    """Manually add an amount to a value, or move it from one value to another. It is a separate line in statements and
    journals, and never changes costs."""
    period = AccountingPeriod.named(new.period)
    if new.recurring and new.until is not None:
        raise InvalidRequest([InvalidParameter("until", "should not be given with recurring")])
    made = NewAdjustment(
        period,
        None if new.recurring else AccountingPeriod.named(new.until or new.period),
        new.by,
        new.value,
        new.from_value,
        decimal.Decimal(new.amount),
        new.kind,
        None if new.applies_to is None else AccountingPeriod.named(new.applies_to),
        new.reason,
        new.reference,
        idempotency_key=new.idempotency_key,
    )
    try:
        check_adjustment(made, request.tenant.currency, exact=new.exact)
    except AdjustmentInvalid as error:
        raise InvalidRequest([InvalidParameter(part, what) for part, what in error.problems]) from None
    return AdjustmentItem.made(adjust(request.writing, made, caller.name, lambda: request.now))


@router.delete(
    "/adjustments/{number}",
    needs=Right.CLOSE,
    whole=True,
    answer="The adjustment is removed.",
    only=(*COMMON_STATUSES, 403),
    problems={404: "There is no such tenant or adjustment.", 409: "Its month is closed: reverse it."},
)
def remove_adjustment(request: Change, caller: CallerDep, number: Number) -> Response:
    """Remove an adjustment of an open month. A recurring one is removed from the open months only."""
    if not end(request.writing, int(number), caller.name, lambda: request.now):
        raise NotFound(f"There is no adjustment {number}.")
    return Response(status_code=204)


@router.post(
    "/adjustments/{number}/reverse",
    status_code=201,
    needs=Right.CLOSE,
    whole=True,
    answer="The adjustment that reverses it.",
    problems={404: "There is no such tenant or adjustment.", 409: "The month is closed, or it is reversed already."},
)
def reverse_adjustment(
    request: Change, caller: CallerDep, number: Number, new: Annotated[ReverseBody, Body()]
) -> AdjustmentItem:
    """Reverse an adjustment in an open month."""
    period = AccountingPeriod.named(new.period)
    back = reverse(request.writing, int(number), period, new.reason, caller.name, lambda: request.now)
    if back is None:
        raise NotFound(f"There is no adjustment {number}.")
    return AdjustmentItem.made(back)


@router.get("/periods/{period}/invoices", needs=Right.READ, whole=True)
def list_invoices(request: Control, period: Month, _params: Annotated[CommonParameters, Query()]) -> InvoiceList:
    """List the invoices of a month by number."""
    found = read_invoices(request.connection, AccountingPeriod.named(period))
    return InvoiceList(items=[_invoice(each) for each in found])


@router.put("/periods/{period}/invoices/{invoice_id}", needs=Right.CLOSE, whole=True, answer="The invoice.")
def put_invoice(
    request: Change, caller: CallerDep, period: Month, invoice_id: InvoiceId, new: Annotated[InvoiceBody, Body()]
) -> InvoiceItem:
    """Enter an invoice of the provider, or replace it. Invoices that are not voided are compared with the bill. The
    receipt of a closed month keeps the invoices of that time."""
    if new.currency != request.tenant.currency:
        what = f"should be {request.tenant.currency}, the currency of the bill"
        raise InvalidRequest([InvalidParameter("currency", what)])
    invoice = Invoice(AccountingPeriod.named(period), invoice_id, new.model_dump(mode="json"), caller.name, request.now)
    with request.writing() as connection:
        save_invoice(connection, invoice)
        touch(connection)
    return _invoice(invoice)


@router.delete(
    "/periods/{period}/invoices/{invoice_id}",
    needs=Right.CLOSE,
    whole=True,
    answer="The invoice is removed.",
    only=(*COMMON_STATUSES, 403),
    problems={404: "There is no such tenant or invoice."},
)
def delete_invoice(request: Change, caller: CallerDep, period: Month, invoice_id: InvoiceId) -> Response:
    """Remove an invoice that was entered by mistake. Set the status of an invoice that its issuer has voided
    instead."""
    with request.writing() as connection:
        if not remove_invoice(connection, AccountingPeriod.named(period), invoice_id, who=caller.name):
            raise NotFound(f"{period} has no invoice {invoice_id[:80]!r}.")
        touch(connection)
    return Response(status_code=204)


def _posted(request: FactsRequest, params: FactsParameters) -> PostedReader:
    return request.context.posted(request.tenant, request.reader, params.as_of)


def _receipt(request: ChangeRequest, n: int, receipt_digest: str) -> ClosingReceipt:
    with request.reading() as connection:
        receipt = read_receipt(connection, n)
    shown = {name: receipt[name] for name in ClosingReceipt.model_fields if name != "receipt_digest"}
    return ClosingReceipt.model_validate({**shown, "receipt_digest": receipt_digest})


def _invoice(invoice: Invoice) -> InvoiceItem:
    return InvoiceItem.model_validate(
        {
            **invoice.content,
            "period_id": invoice.period.id,
            "invoice_id": invoice.invoice_id,
            "who": invoice.who,
            "at": invoice.at,
        }
    )
