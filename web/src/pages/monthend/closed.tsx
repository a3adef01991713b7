import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { address } from "../../api/address";
import { send } from "../../api/client";
import { useAccess } from "../../api/me";
import { useOf } from "../../api/questions";
import type { Aggregate, Month, Months } from "../../api/shapes";
import { useHere } from "../../app/router";
import { instant, month as monthName } from "../../format/days";
import { dimension, label } from "../../format/names";
import { Amount, Card, Exact } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { Fact } from "../../ui/fact";
import { texts } from "../../ui/form";
import { Refusal } from "../../ui/refusal";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { API } from "../../url/link";
import { during } from "../../url/view";
import { say } from "../../words/say";
import { journalOf } from "../statement/address";
import { inWords } from "./open";

interface Props {
  tenant: string;
  month: Month;
  months: Months;
  mayAdmin: boolean;
}

type Act = "reopen" | "seal";

const WORDS: Record<Act, readonly [title: string, meaning: string]> = {
  reopen: [say("Reopen"), say("Its receipt and its documents stay; the next closing takes their place.")],
  seal: [say("Seal"), say("It cannot be reopened any more, and what is learned of it later is not posted.")],
};

/** A month as it was booked: its receipt, its documents, and what was learned of it since. */
export function ClosedMonth({ tenant, month, months, mayAdmin }: Props) {
  const here = useHere();
  const { may } = useAccess(tenant);
  const [act, setAct] = useState<Act | null>(null);
  const { totals, period_id: period } = month;
  const { currency } = months;
  const latest = months.items.find((each) => each.state === "closed" || each.state === "sealed");
  const acts: Act[] = month.state === "sealed" ? [] : latest?.period_id === period ? ["reopen", "seal"] : ["seal"];
  const statements = { ...during(here.view, month.start, month.end), filters: [] };
  return (
    <>
      <Card
        title={
          month.state === "sealed"
            ? say("{month} is sealed", { month: monthName(period) })
            : say("{month} is closed", { month: monthName(period) })
        }
        note={month.times_closed > 1 ? say("closed {n} times", { n: month.times_closed }) : undefined}
        action={
          mayAdmin &&
          acts.map((each) => (
            <button key={each} type="button" className="button" onClick={() => setAct(each)}>
              {WORDS[each][0]}
            </button>
          ))
        }
      >
        <dl className="facts-list">
          <Fact name={say("Booked")}>
            <Exact amount={totals.posted} currency={currency} />
          </Fact>
          <Fact name={say("Own costs")}>
            <Exact amount={totals.regular} currency={currency} />
          </Fact>
          <Fact name={say("Corrections of earlier months")}>
            <Exact amount={totals.corrections} currency={currency} />
          </Fact>
          <Fact name={say("Adjustments")}>
            <Exact amount={totals.adjustments} currency={currency} />
          </Fact>
          {month.closed_at && (
            <Fact name={say("Closed")}>
              {say("{time} by {name}", { time: instant(month.closed_at), name: month.closed_by })}
            </Fact>
          )}
          {month.sealed_at && <Fact name={say("Sealed")}>{instant(month.sealed_at)}</Fact>}
          <Fact name={say("Digest of the amounts")}>
            <code className="small">{month.digest}</code>
          </Fact>
          {month.receipt && <Receipt of={month.receipt} />}
        </dl>
        <p className="tools">
          <a className="more" href={here.to(statements, "statement")}>
            {say("Statements")}
          </a>
          <a className="more" href={here.to(journalOf(statements, months.by[0] ?? "identity_id"), "statement")}>
            {say("Journal")}
          </a>
          {may("export") && (
            <a
              className="more"
              href={address(tenant, "/periods/{period}/journal", { at: { period }, query: { format: "csv" } })}
              download={`${tenant}-${period}-journal.csv`}
            >
              {say("Journal as CSV")}
            </a>
          )}
          <a
            className="more"
            href={`${API}tenants/${encodeURIComponent(tenant)}/closings.jsonl`}
            download={`${tenant}-closings.jsonl`}
          >
            {say("All receipts")}
          </a>
        </p>
      </Card>
      <Since tenant={tenant} month={month} months={months} />
      {act && <ActDialog tenant={tenant} period={period} act={act} onClose={() => setAct(null)} />}
    </>
  );
}

/** What the receipt of a closing says, and the one that it follows. */
function Receipt({
  of: { n, receipt_digest, previous, note, accepted, reason },
}: {
  of: NonNullable<Month["receipt"]>;
}) {
  const kinds = [...Map.groupBy(accepted, (each) => each.split(":")[0] ?? each)];
  return (
    <>
      <Fact name={say("Receipt")}>
        {say("number {n}, {digest}", { n: String(n), digest: <code className="small">{receipt_digest}</code> })}
      </Fact>
      <Fact name={say("Receipt before it")}>
        {previous === null ? say("none: it is the first") : <code className="small">{previous}</code>}
      </Fact>
      {note && <Fact name={say("Note")}>{note}</Fact>}
      {kinds.length > 0 && (
        <Fact name={say("Accepted")}>
          {kinds
            .map(([kind, all]) => say("{kind}: {n} {n|time|times}", { kind: inWords(kind), n: all.length }))
            .join(", ")}
          {reason && `. ${reason}`}
        </Fact>
      )}
    </>
  );
}

interface Learned {
  posted: string;
  value: string | null;
  amount: string;
}

/** What was posted about a month since it was closed, by the month that it was posted to and the value of `by`. */
export function learned({ buckets }: Pick<Aggregate, "buckets">, period: string, by: string): Learned[] {
  return buckets.flatMap(({ dimensions, total_amount: amount }) => {
    const { posted_period: posted, charge_class, charge_period } = dimensions;
    const isOfMonth = charge_class === "correction" && charge_period === period && posted;
    return isOfMonth ? [{ posted, value: dimensions[by] ?? null, amount }] : [];
  });
}

function Since({ tenant, month, months }: Pick<Props, "tenant" | "month" | "months">) {
  const [newest] = months.items;
  const [by = "identity_id"] = months.by;
  const found = useOf(tenant, "/chargebacks/aggregate", {
    query: {
      start_date: `${months.books_begin}-01`,
      end_date: newest?.end ?? month.end,
      basis: "posted",
      group_by: [by],
      time_bucket: "all",
      names: true,
    },
  });
  return (
    <Card title={say("Learned since")} note={say("posted to the month that was open then")}>
      <Answered answer={found} skeleton={<Bone height={6} />}>
        {(answer) => {
          const corrections = learned(answer, month.period_id, by);
          return corrections.length === 0 ? (
            <p className="note">{say("Nothing: what is known of the month is what was booked.")}</p>
          ) : (
            <Table
              className="tall"
              label={say("Table of corrections")}
              heads={[say("Posted to"), dimension(by), { name: say("Correction"), end: true }]}
            >
              {corrections.map(({ posted, value, amount }) => (
                <tr key={`${posted} ${value}`}>
                  <th scope="row">{monthName(posted)}</th>
                  <td>{label(by, value, value && answer.names?.[by]?.[value]).name}</td>
                  <td className="end">
                    <Amount amount={amount} currency={months.currency} />
                  </td>
                </tr>
              ))}
            </Table>
          );
        }}
      </Answered>
    </Card>
  );
}

function ActDialog({
  tenant,
  period,
  act,
  onClose,
}: {
  tenant: string;
  period: string;
  act: Act;
  onClose: () => void;
}) {
  const client = useQueryClient();
  const [title, meaning] = WORDS[act];
  const change = useMutation({
    mutationFn: (reason: string) =>
      send("post", tenant, `/periods/{period}/${act}`, { at: { period }, body: { reason } }),
    onSuccess: () => {
      void client.invalidateQueries();
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    change.mutate(texts(event.currentTarget, "reason").reason);
  };
  const month = monthName(period);
  return (
    <Drawer
      title={act === "seal" ? say("Seal {month}", { month }) : say("Reopen {month}", { month })}
      onClose={onClose}
    >
      <form className="form" onSubmit={submit}>
        <p>{meaning}</p>
        <label>
          {say("Why")}
          <input className="field" name="reason" required maxLength={255} autoComplete="off" />
        </label>
        <button type="submit" className="button primary" disabled={change.isPending}>
          {title}
        </button>
        <Refusal of={change} />
      </form>
    </Drawer>
  );
}
