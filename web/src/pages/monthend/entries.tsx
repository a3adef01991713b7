import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "preact/compat";
import { address } from "../../api/address";
import { send } from "../../api/client";
import { useOf } from "../../api/questions";
import type { ClosingPreview, Invoice } from "../../api/shapes";
import { full } from "../../format/days";
import { grouped } from "../../format/formats";
import { dimension } from "../../format/names";
import { Amount, Card } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { texts } from "../../ui/form";
import { Refusal } from "../../ui/refusal";
import { RemoveButton } from "../../ui/remove";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
import { ADJUSTMENTS, called, INVOICES, STATUSES } from "./kinds";

/** A card with a list, and a button that opens a form for one more. */
function Entered({ title, add, children, form }: EnteredProps) {
  const [isOpen, setOpen] = useState(false);
  const button = (
    <button type="button" className="button" onClick={() => setOpen(true)}>
      {add}
    </button>
  );
  return (
    <Card title={title} action={add && button}>
      {children}
      {isOpen && (
        <Drawer title={add} onClose={() => setOpen(false)}>
          {form(() => setOpen(false))}
        </Drawer>
      )}
    </Card>
  );
}

interface EnteredProps {
  title: string;
  /** What the button says; nothing for who may not add. */
  add: string;
  children: ReactNode;
  form: (close: () => void) => ReactNode;
}

interface AdjustmentsProps {
  tenant: string;
  period: string;
  /** By what statements are kept. */
  by: readonly string[];
  may: boolean;
}

/** What people add to a month by hand. */
export function Adjustments({ tenant, period, by, may }: AdjustmentsProps) {
  const found = useOf(tenant, "/adjustments", { query: { period } });
  return (
    <Entered
      title={say("Adjustments")}
      add={may ? say("Add an adjustment") : ""}
      form={(close) => <AdjustmentForm tenant={tenant} period={period} by={by} onDone={close} />}
    >
      <Answered answer={found} skeleton={<Bone height={6} />}>
        {({ items }) => {
          const present = items.filter((each) => each.removed_at === null);
          return present.length === 0 ? (
            <p className="note">{say("None. [adjustments]")}</p>
          ) : (
            <Table
              label={say("Table of adjustments")}
              heads={[
                say("To [who gets it]"),
                say("From [who gives it]"),
                say("Why"),
                say("By [who did it]"),
                { name: say("Amount"), end: true },
                may && say("Remove"),
              ]}
            >
              {present.map((each) => (
                <tr key={each.id}>
                  <th scope="row">{each.value}</th>
                  <td>{each.from ?? called(ADJUSTMENTS, each.kind)}</td>
                  <td className="why">
                    {each.reason}
                    {each.reference && <span className="quiet small"> {each.reference}</span>}
                  </td>
                  <td>{each.created_by}</td>
                  <td className="end num">{grouped(each.amount)}</td>
                  {may && (
                    <td>
                      <RemoveButton
                        href={address(tenant, "/adjustments/{number}", { at: { number: String(each.id) } })}
                        what={say("the adjustment of {name}", { name: each.value })}
                      />
                    </td>
                  )}
                </tr>
              ))}
            </Table>
          );
        }}
      </Answered>
    </Entered>
  );
}

function AdjustmentForm({ tenant, period, by, onDone }: Omit<AdjustmentsProps, "may"> & { onDone: () => void }) {
  const client = useQueryClient();
  const add = useMutation({
    mutationFn: (said: Record<"by" | "value" | "from" | "amount" | "kind" | "reason" | "reference", string>) =>
      send("post", tenant, "/adjustments", {
        body: {
          period,
          by: said.by,
          value: said.value,
          from: said.from || null,
          amount: said.amount,
          kind: ADJUSTMENTS.find(([each]) => each === said.kind)?.[0] ?? "reallocation",
          reason: said.reason,
          reference: said.reference || null,
        },
      }),
    onSuccess: () => {
      void client.invalidateQueries();
      onDone();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    add.mutate(texts(event.currentTarget, "by", "value", "from", "amount", "kind", "reason", "reference"));
  };
  return (
    <form className="form" onSubmit={submit}>
      <Select name="by" label={say("By [grouped]")} values={by.map((each) => [each, dimension(each)] as const)} />
      <Text name="value" label={say("Who gets it")} />
      <Text name="from" label={say("Who gives it, if it is moved")} optional />
      <Text name="amount" label={say("Amount, such as 250.00")} />
      <Select name="kind" label={say("Kind")} values={ADJUSTMENTS} />
      <Text name="reason" label={say("Why; the statement says so")} />
      <Text name="reference" label={say("Reference, such as a ticket")} optional />
      <button type="submit" className="button primary" disabled={add.isPending}>
        {say("Add")}
      </button>
      <Refusal of={add} />
    </form>
  );
}

function Text({ name, label, optional = false }: { name: string; label: string; optional?: boolean }) {
  return (
    <label>
      {label}
      <input className="field" name={name} required={!optional} maxLength={255} autoComplete="off" />
    </label>
  );
}

interface SelectProps {
  name: string;
  label: string;
  values: readonly (readonly [value: string, title: string])[];
}

function Select({ name, label, values }: SelectProps) {
  return (
    <label>
      {label}
      <select className="field" name={name}>
        {values.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The provider's invoices of a month, to compare with its bill. */
export function Invoices({ tenant, preview, may }: { tenant: string; preview: ClosingPreview; may: boolean }) {
  const { period_id: period, currency } = preview;
  const found = useOf(tenant, "/periods/{period}/invoices", { at: { period } });
  return (
    <Entered
      title={say("Invoices of the provider")}
      add={may ? say("Enter an invoice") : ""}
      form={(close) => <InvoiceForm tenant={tenant} period={period} currency={currency} onDone={close} />}
    >
      <Answered answer={found} skeleton={<Bone height={6} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="note">
              {say("None was entered. With them, the month is compared with what the provider invoiced.")}
            </p>
          ) : (
            <Table
              label={say("Table of invoices")}
              heads={[
                say("Number"),
                say("Issuer"),
                say("Kind"),
                say("Status"),
                { name: say("Total"), end: true },
                may && say("Remove"),
              ]}
            >
              {items.map((each) => (
                <InvoiceRow key={each.invoice_id} tenant={tenant} invoice={each} may={may} />
              ))}
            </Table>
          )
        }
      </Answered>
    </Entered>
  );
}

function InvoiceRow({ tenant, invoice, may }: { tenant: string; invoice: Invoice; may: boolean }) {
  const { period_id: period, invoice_id, issuer, kind, status, total, tax, currency, issued } = invoice;
  return (
    <tr>
      <th scope="row">{invoice_id}</th>
      <td>
        {issuer}
        {issued && <div className="quiet small">{full(issued)}</div>}
      </td>
      <td>{called(INVOICES, kind)}</td>
      <td>{called(STATUSES, status)}</td>
      <td className="end">
        <Amount amount={total} currency={currency} />
        {tax && (
          <div className="quiet small">
            {say("of it tax {amount}", { amount: <Amount amount={tax} currency={currency} /> })}
          </div>
        )}
      </td>
      {may && (
        <td>
          <RemoveButton
            href={address(tenant, "/periods/{period}/invoices/{invoice_id}", { at: { period, invoice_id } })}
            what={say("invoice {number}", { number: invoice_id })}
          />
        </td>
      )}
    </tr>
  );
}

interface InvoiceFormProps {
  tenant: string;
  period: string;
  currency: string;
  onDone: () => void;
}

function InvoiceForm({ tenant, period, currency, onDone }: InvoiceFormProps) {
  const client = useQueryClient();
  const enter = useMutation({
    mutationFn: (said: Record<"number" | "issuer" | "kind" | "status" | "total" | "tax", string>) =>
      send("put", tenant, "/periods/{period}/invoices/{invoice_id}", {
        at: { period, invoice_id: said.number },
        body: {
          issuer: said.issuer,
          kind: INVOICES.find(([each]) => each === said.kind)?.[0] ?? "invoice",
          status: STATUSES.find(([each]) => each === said.status)?.[0] ?? "issued",
          currency,
          total: said.total,
          tax: said.tax || null,
        },
      }),
    onSuccess: () => {
      void client.invalidateQueries();
      onDone();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    enter.mutate(texts(event.currentTarget, "number", "issuer", "kind", "status", "total", "tax"));
  };
  return (
    <form className="form" onSubmit={submit}>
      <Text name="number" label={say("Number")} />
      <Text name="issuer" label={say("Issuer")} />
      <Select name="kind" label={say("Kind")} values={INVOICES} />
      <Select name="status" label={say("Status")} values={STATUSES} />
      <Text name="total" label={say("Total in {currency}, with tax", { currency })} />
      <Text name="tax" label={say("The part of it that is tax")} optional />
      <button type="submit" className="button primary" disabled={enter.isPending}>
        {say("Enter [an invoice]")}
      </button>
      <Refusal of={enter} />
    </form>
  );
}
