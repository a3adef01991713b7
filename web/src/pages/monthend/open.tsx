import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { useAnswer } from "../../api/answer";
import { send } from "../../api/client";
import { asProblem } from "../../api/problems";
import { question } from "../../api/questions";
import type { Blocker, ClosingPreview, Month, PostedGrouping } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full, instant, month as monthName } from "../../format/days";
import { money } from "../../format/money";
import { amid, dimension } from "../../format/names";
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
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { nameOf } from "../statement/amount";
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
  return say("Close {month}: {amount}, {n} {n|statement|statements}", {
    month: monthName(preview.period_id),
    amount: money(preview.totals.posted, preview.currency),
    n: preview.by[0]?.values.length ?? 0,
  });
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
      title={say("Close {month}", { month: monthName(preview.period_id) })}
      note={
        found.length
          ? say("{n} {n|thing|things} in the way", { n: preview.blockers.length })
          : say("nothing is in the way")
      }
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
            <h3>{say("Look at this first")}</h3>
            <ul>
              {preview.warnings.map((each) => (
                <li key={`${each.kind} ${each.detail}`}>
                  {reworded(each.detail)} <Where kind={each.kind} preview={preview} />
                </li>
              ))}
            </ul>
          </>
        )}
        {preview.requested_by && (
          <p className="banner">
            {say("{name} has asked to close this month with these amounts. Another person confirms it here.", {
              name: preview.requested_by,
            })}
          </p>
        )}
        {mayClose ? (
          <>
            <div className="form">
              <label>
                {say("Note for the receipt")}
                <input className="field" name="note" maxLength={255} autoComplete="off" />
              </label>
              {taken.length > 0 && (
                <label>
                  {say("Why this is accepted")}
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
            {say("Asked for at {time}. Another person has to confirm it within seven days.", {
              time: instant(close.data.at),
            })}
          </p>
        )}
        <Refusal of={close} />
        {stale && (
          <MovedAmounts
            of={stale}
            label={say("What has changed since you looked")}
            columns={[say("You saw"), say("It is now")]}
          />
        )}
      </form>
    </Card>
  );
}

const MOST = 3;

const KINDS: Readonly<Record<string, string>> = {
  accruing: say("Accruing"),
  settling: say("Settling"),
  "day-missing": say("Day missing"),
  "day-differs": say("Day differs"),
  "day-pending": say("Day pending"),
  "run-in-progress": say("Run in progress"),
  retention: say("Retention"),
};

/** What a kind of obstacle is called; one that is not known, as it is: `Some kind` for `some-kind`. */
export function inWords(kind: string): string {
  if (KINDS[kind]) return KINDS[kind];
  const words = kind.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Where something is looked at and mended, by its kind: a page, and what it is called. */
const WHERE: Readonly<Record<string, readonly [page: string, words: string]>> = {
  "run-in-progress": ["days", say("Runs in Health")],
  "measured-in-part": ["days", say("Days in Health")],
  unallocated: ["unowned", say("What has no owner")],
  unassigned: [CATEGORIES, say("Cost categories")],
  dispute: ["statement", say("Statements")],
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
          .map((each) => reworded(each.detail))
          .join(" ")}
        {all.length > MOST && say(" And {n} more.", { n: all.length - MOST })}
      </div>
      <div className="quiet small">{one && reworded(one.remedy)}</div>
      <p className="tools">
        {one && <Where kind={one.kind} preview={preview} />}
        {first && last && (
          <a className="more" href={here.to(during(here.view, first, last), "days")}>
            {first === last
              ? say("{day} in Health", { day: full(first) })
              : say("{from} to {to} in Health", { from: full(first), to: full(last) })}
          </a>
        )}
        {canBeAccepted && onTake && (
          <label className="check">
            <input type="checkbox" checked={isTaken} onChange={onTake} /> {say("close it all the same")}
          </label>
        )}
      </p>
    </li>
  );
}

function Sums({ preview: { totals, corrections, opening, currency, invoices } }: { preview: ClosingPreview }) {
  const amounts: readonly (readonly [string, string])[] = [
    [say("Billed by the provider"), totals.billed],
    [say("Own costs of the month"), totals.regular],
    ...corrections.map(
      (each) => [say("Correction of {month}", { month: monthName(each.period_id) }), each.amount] as const,
    ),
    [say("Adjustments"), totals.adjustments],
    [say("Booked"), totals.posted],
  ];
  return (
    <Card title={say("What is booked")} note={say("in {currency}", { currency })}>
      <dl className="facts-list">
        {amounts.map(([name, amount]) => (
          <Fact key={name} name={name}>
            <Exact amount={amount} currency={currency} />
          </Fact>
        ))}
        {invoices.difference !== null && (
          <Fact name={say("Invoices less the bill")}>
            <Exact amount={invoices.difference} currency={currency} />
          </Fact>
        )}
      </dl>
      {opening.length > 0 && (
        <p className="note">
          {say(
            "It would be the first month of the books. What is learned of {month} and what follows it is then visible, and not posted.",
            { month: monthName(opening[0]?.period_id ?? "") },
          )}
        </p>
      )}
    </Card>
  );
}

function Grouping({ preview, grouping }: { preview: ClosingPreview; grouping: PostedGrouping }) {
  const { currency } = preview;
  const differs = read(grouping.difference) !== 0n;
  const name = dimension(grouping.by);
  return (
    <Card
      title={say("Statements by {dimension}", { dimension: amid(name) })}
      note={differs ? undefined : say("they sum to the bill, corrections and adjustments")}
    >
      <Table
        className="tall"
        label={say("Table of statements by {dimension}", { dimension: amid(name) })}
        heads={[
          name,
          { name: say("Own costs"), end: true },
          { name: say("Corrections"), end: true },
          { name: say("Adjustments"), end: true },
          { name: say("Statement"), end: true },
        ]}
        foot={
          <tr>
            <th scope="row" colSpan={4}>
              {say("All statements")}
            </th>
            <td className="end">
              <Amount amount={grouping.rounded} currency={currency} />
            </td>
          </tr>
        }
      >
        {grouping.values.map((each) => (
          <tr key={each.value}>
            <th scope="row">{nameOf(grouping.by, each)}</th>
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
          {say("They differ from the bill, corrections and adjustments by {amount}.", {
            amount: <Exact amount={grouping.difference} currency={currency} />,
          })}
        </p>
      )}
    </Card>
  );
}
