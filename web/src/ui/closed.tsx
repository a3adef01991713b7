import { useId, useState } from "preact/compat";
import type { Moved, Reaching } from "../api/problems";
import { full, month } from "../format/days";
import { dimension, label } from "../format/names";
import { say } from "../words/say";
import { BeforeAndAfter } from "./card";
import { Table } from "./table";

interface Props {
  of: Reaching;
  /** Lets the change begin on a day; without it, it cannot have one. */
  onBegin?: ((day: string) => void) | undefined;
  /** Makes the change all the same, for a reason. */
  onRestate: (reason: string) => void;
  isPending: boolean;
}

/** What a change would move in closed months, and two ways on: to let it begin in an open month, or to post a correction.
 * It may stand within a form, which it neither changes nor sends. */
export function ReachesClosed({ of, onBegin, onRestate, isPending }: Props) {
  const { begins } = of;
  const [reason, setReason] = useState("");
  const title = useId();
  const restate = () => reason.trim() && onRestate(reason.trim());
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    restate();
  };
  return (
    <section className="stack" aria-labelledby={title} onInput={(event) => event.stopPropagation()}>
      <p className="banner bad" role="alert" id={title}>
        <b>
          {of.moved.length > 0
            ? say("This moves amounts of closed months. Nothing was changed.")
            : say(
                "This calculates days of closed months again. Nothing was started; what moves is known when it is done.",
              )}
        </b>
      </p>
      {of.moved.length > 0 && (
        <MovedAmounts
          of={of}
          label={say("What would move in closed months")}
          columns={[say("Booked"), say("With the change")]}
        />
      )}
      {onBegin && (
        <p className="tools">
          <button type="button" className="button primary" disabled={isPending} onClick={() => onBegin(begins)}>
            {say("Let it begin on {day}", { day: full(begins) })}
          </button>
          <span className="note">{say("The first day that is open. Closed months stay as they were booked.")}</span>
        </p>
      )}
      <div className="form">
        <label>
          {say("Why the past was wrong")}
          <input
            className="field"
            maxLength={255}
            autoComplete="off"
            value={reason}
            onKeyDown={onKeyDown}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <button type="button" className="button" disabled={isPending || !reason.trim()} onClick={restate}>
          {say("Post it to {month}", { month: month(begins) })}
        </button>
      </div>
      <p className="note">
        {say("Then the closed months are right as well: {month} has the difference as a correction.", {
          month: month(begins),
        })}
      </p>
    </section>
  );
}

/** Amounts by month and value as they were and as they are, and how many more there are. */
export function MovedAmounts({
  of: { moved, moved_count: all, currency },
  label: name,
  columns: [before, after],
}: {
  of: Moved;
  label: string;
  columns: readonly [before: string, after: string];
}) {
  return (
    <>
      <Table
        className="tall"
        label={name}
        heads={[
          say("Month"),
          say("Value"),
          { name: before, end: true },
          { name: after, end: true },
          { name: say("Difference"), end: true },
        ]}
      >
        {moved.map((each) => (
          <tr key={`${each.period_id} ${each.by} ${each.value}`}>
            <th scope="row">{month(each.period_id)}</th>
            <td>
              {label(each.by, each.value).name} <span className="quiet small">{dimension(each.by)}</span>
            </td>
            <BeforeAndAfter before={each.before} after={each.after} delta={each.delta} currency={currency} />
          </tr>
        ))}
      </Table>
      {all > moved.length && (
        <p className="note">{say("And {n} more {n|amount|amounts}.", { n: all - moved.length })}</p>
      )}
    </>
  );
}
