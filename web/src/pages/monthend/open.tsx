import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useAnswer } from "../../api/answer";
import { send } from "../../api/client";
import { asProblem } from "../../api/problems";
import { question } from "../../api/questions";
import type { Blocker, ClosingPreview, Month, PostedGrouping } from "../../api/shapes";
import { useHere } from "../../app/router";
import { count, full, instant, month as monthName } from "../../format/days";
import { grouped } from "../../format/formats";
import { money } from "../../format/money";
import { dimension, label, NOBODY } from "../../format/names";
import { refused } from "../../format/rights";
import { read } from "../../money/money";
import { Amount, Card, Exact } from "../../ui/card";
import { MovedAmounts } from "../../ui/closed";
import { Fact } from "../../ui/fact";
import { texts } from "../../ui/form";
import { Refusal } from "../../ui/refusal";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { CATEGORIES } from "../../url/link";
import { during } from "../../url/view";
import { Adjustments, Invoices } from "./entries";

interface Props {
  tenant: string;
  month: Month;
  mayClose: boolean;
}

/** What closing a month would book, what is in the way, and the button that closes it. */
export function OpenMonth({ tenant, month, mayClose }: Props) {
  const asked = { at: { period: month.period_id } };
  const preview = useAnswer({ ...question(tenant, "/periods/{period}/closing-preview", asked), alone: true });
  return (
    <Answered answer={preview} skeleton={<Bone height={40} />}>
      {(found) => (
        <>
          <Close tenant={tenant} preview={found} mayClose={mayClose} />
          <Sums preview={found} />
          {found.by.map((each) => (
            <Grouping key={each.by} preview={found} grouping={each} />
          ))}
          <Adjustments tenant={tenant} period={found.period_id} by={found.by.map((each) => each.by)} may={mayClose} />
          <Invoices tenant={tenant} preview={found} may={mayClose} />
        </>
      )}
    </Answered>
  );
}

/** What is in the way of one kind: it is accepted, or mended, together. */
export interface Obstacle {
  kind: string;
  all: readonly Blocker[];
  canBeAccepted: boolean;
}

export function obstacles(blockers: readonly Blocker[]): Obstacle[] {
  const kinds = Map.groupBy(blockers, (each) => each.kind);
  return [...kinds].map(([kind, all]) => ({ kind, all, canBeAccepted: all.every((each) => each.can_be_accepted) }));
}

/** What the button will do, in its own words. */
export function willDo(preview: Pick<ClosingPreview, "period_id" | "currency" | "totals" | "by">): string {
  const statements = preview.by[0]?.values.length ?? 0;
  return `Close ${monthName(preview.period_id)}: ${money(preview.totals.posted, preview.currency)}, ${count(statements, "statement")}`;
}

function Close({ tenant, preview, mayClose }: { tenant: string; preview: ClosingPreview; mayClose: boolean }) {
  const client = useQueryClient();
  const [accepted, setAccepted] = useState<readonly string[]>([]);
  const found = obstacles(preview.blockers);
  const taken = found.filter((each) => accepted.includes(each.kind)).map((each) => each.kind);
  const close = useMutation({
    mutationFn: (said: Record<"note" | "reason", string>) =>
      send("post", tenant, "/periods/{period}/close", {
        at: { period: preview.period_id },
        body: {
          expected_digest: preview.digest,
          looked_at: preview.as_of,
          accept: taken,
          ...(said.note && { note: said.note }),
          ...(said.reason && { reason: said.reason }),
        },
      }),
    // What was looked at may not be what is there any more: it is shown again, whatever was answered.
    onSettled: () => client.invalidateQueries(),
  });
  const stale = close.isError ? asProblem(close.error).stale : null;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    close.mutate(texts(event.currentTarget, "note", "reason"));
  };
  const toggle = (kind: string) =>
    setAccepted(accepted.includes(kind) ? accepted.filter((each) => each !== kind) : [...accepted, kind]);
  return (
    <Card
      title={`Close ${monthName(preview.period_id)}`}
      note={found.length ? `${count(preview.blockers.length, "thing")} in the way` : "nothing is in the way"}
    >
      <form className="stack" onSubmit={submit}>
        {found.length > 0 && (
          <ul className="problems">
            {found.map((each) => (
              <Way
                key={each.kind}
                preview={preview}
                obstacle={each}
                isTaken={taken.includes(each.kind)}
                onTake={mayClose ? () => toggle(each.kind) : undefined}
              />
            ))}
          </ul>
        )}
        {preview.warnings.length > 0 && (
          <>
            <h3>Look at this first</h3>
            <ul>
              {preview.warnings.map((each) => (
                <li key={`${each.kind} ${each.detail}`}>
                  {each.detail} <Where kind={each.kind} preview={preview} />
                </li>
              ))}
            </ul>
          </>
        )}
        {preview.requested_by && (
          <p className="banner">
            {preview.requested_by} has asked to close this month with these amounts. Another person confirms it here.
          </p>
        )}
        {mayClose ? (
          <>
            <div className="form">
              <label>
                Note for the receipt
                <input className="field" name="note" maxLength={255} autoComplete="off" />
              </label>
              {taken.length > 0 && (
                <label>
                  Why this is accepted
                  <input className="field" name="reason" required maxLength={255} autoComplete="off" />
                </label>
              )}
            </div>
            <p className="tools">
              <button
                type="submit"
                className="button primary"
                disabled={close.isPending || taken.length < found.length}
              >
                {willDo(preview)}
              </button>
            </p>
          </>
        ) : (
          <p className="note">{refused("close")}</p>
        )}
        {close.isSuccess && close.data.kind === "requested" && (
          <p className="banner good" role="status">
            Asked for at {instant(close.data.at)}. Another person has to confirm it within seven days.
          </p>
        )}
        <Refusal of={close} />
        {stale && (
          <MovedAmounts of={stale} label="What has changed since you looked" columns={["You saw", "It is now"]} />
        )}
      </form>
    </Card>
  );
}

const MOST = 3;

/** `Day missing` for `day-missing`. */
export function inWords(kind: string): string {
  const words = kind.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Where something is looked at and mended, by its kind: a page, and what it is called. */
const WHERE: Readonly<Record<string, readonly [page: string, words: string]>> = {
  "run-in-progress": ["days", "Runs in Health"],
  "measured-in-part": ["days", "Days in Health"],
  unallocated: ["unowned", "What has no owner"],
  unassigned: [CATEGORIES, "Cost categories"],
  dispute: ["statement", "Statements"],
};

/** Leads to where something is mended, in the month that it is about. */
function Where({ kind, preview: { start, end } }: { kind: string; preview: Pick<ClosingPreview, "start" | "end"> }) {
  const here = useHere();
  const found = WHERE[kind];
  if (!found) return null;
  return (
    <a className="more" href={here.to({ ...during(here.view, start, end), filters: [] }, found[0])}>
      {found[1]}
    </a>
  );
}

function Way({
  preview,
  obstacle: { kind, all, canBeAccepted },
  isTaken,
  onTake,
}: {
  preview: ClosingPreview;
  obstacle: Obstacle;
  isTaken: boolean;
  onTake: (() => void) | undefined;
}) {
  const here = useHere();
  const days = all.map((each) => each.date).filter((each) => each !== null);
  const [first, last] = [days[0], days.at(-1)];
  const [one] = all;
  return (
    <li>
      <b>{inWords(kind)}</b>
      <div>
        {all
          .slice(0, MOST)
          .map((each) => each.detail)
          .join(" ")}
        {all.length > MOST && ` And ${grouped(all.length - MOST)} more.`}
      </div>
      <div className="quiet small">{one?.remedy}</div>
      <p className="tools">
        {one && <Where kind={one.kind} preview={preview} />}
        {first && last && (
          <a className="more" href={here.to(during(here.view, first, last), "days")}>
            {first === last ? full(first) : `${full(first)} to ${full(last)}`} in Health
          </a>
        )}
        {canBeAccepted && onTake && (
          <label className="check">
            <input type="checkbox" checked={isTaken} onChange={onTake} /> close it all the same
          </label>
        )}
      </p>
    </li>
  );
}

function Sums({ preview: { totals, corrections, opening, currency, invoices } }: { preview: ClosingPreview }) {
  const amounts: readonly (readonly [string, string])[] = [
    ["Billed by the provider", totals.billed],
    ["Own costs of the month", totals.regular],
    ...corrections.map((each) => [`Correction of ${monthName(each.period_id)}`, each.amount] as const),
    ["Adjustments", totals.adjustments],
    ["Booked", totals.posted],
  ];
  return (
    <Card title="What is booked" note={`in ${currency}`}>
      <dl className="facts-list">
        {amounts.map(([name, amount]) => (
          <Fact key={name} name={name}>
            <Exact amount={amount} currency={currency} />
          </Fact>
        ))}
        {invoices.difference !== null && (
          <Fact name="Invoices less the bill">
            <Exact amount={invoices.difference} currency={currency} />
          </Fact>
        )}
      </dl>
      {opening.length > 0 && (
        <p className="note">
          It would be the first month of the books. What is learned of {monthName(opening[0]?.period_id ?? "")} and what
          follows it is then visible, and not posted.
        </p>
      )}
    </Card>
  );
}

function Grouping({ preview, grouping }: { preview: ClosingPreview; grouping: PostedGrouping }) {
  const { currency } = preview;
  const differs = read(grouping.difference) !== 0n;
  return (
    <Card
      title={`Statements by ${dimension(grouping.by).toLowerCase()}`}
      note={differs ? undefined : "they sum to the bill, corrections and adjustments"}
    >
      <Table
        className="tall"
        label={`Table of statements by ${dimension(grouping.by).toLowerCase()}`}
        heads={[
          dimension(grouping.by),
          { name: "Own costs", end: true },
          { name: "Corrections", end: true },
          { name: "Adjustments", end: true },
          { name: "Statement", end: true },
        ]}
        foot={
          <tr>
            <th scope="row" colSpan={4}>
              All statements
            </th>
            <td className="end">
              <Amount amount={grouping.rounded} currency={currency} />
            </td>
          </tr>
        }
      >
        {grouping.values.map((each) => (
          <tr key={each.value}>
            <th scope="row">
              {each.value === NOBODY ? "Costs without an identity" : label(grouping.by, each.value, each.name).name}
            </th>
            {[each.regular, each.corrections, each.adjustments, each.rounded].map((amount, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a column is known by its place
              <td key={place} className="end">
                <Amount amount={amount} currency={currency} />
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {differs && (
        <p className="bad" role="alert">
          They differ from the bill, corrections and adjustments by{" "}
          <Exact amount={grouping.difference} currency={currency} />.
        </p>
      )}
    </Card>
  );
}
