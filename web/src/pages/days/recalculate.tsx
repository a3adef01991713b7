import { type FormEvent, useState } from "preact/compat";
import { asProblem } from "../../api/problems";
import type { RunBody } from "../../api/shapes";
import { isDay, length } from "../../calendar/days";
import { ReachesClosed } from "../../ui/closed";
import { Drawer } from "../../ui/drawer";
import { texts } from "../../ui/form";
import type { Dates } from "../../url/period";
import { say } from "../../words/say";
import { Progress, useFollowedRun } from "./followed";

interface Props {
  tenant: string;
  dates: Dates;
  onClose: () => void;
}

/** Asks before days are calculated again, then tells how it goes. */
export function Recalculate({ tenant, dates, onClose }: Props) {
  const { start, run: begin, before } = useFollowedRun(tenant);
  const [chosen, setChosen] = useState(dates);
  const [accept_less, setLess] = useState(false);
  const choose = (event: FormEvent<HTMLFormElement>) => {
    const { from, to } = texts(event.currentTarget, "from", "to");
    if (isDay(from) && isDay(to)) setChosen({ start: from, end: to });
  };
  const run = (more: Partial<RunBody>) =>
    begin({ start_date: chosen.start, end_date: chosen.end, recalculate: true, accept_less, ...more });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    run({});
  };
  const reaching = start.isError ? asProblem(start.error).reaching : null;
  const days = length(chosen.start, chosen.end);
  return (
    <Drawer title={say("Recalculate these days")} onClose={onClose}>
      {start.isSuccess ? (
        <Progress tenant={tenant} before={before} />
      ) : (
        <form className="stack" onSubmit={submit} onInput={choose}>
          <p>
            {say(
              "Bill, inventory and usage of these days are fetched again, and their costs are split again. What was charged may change; it stays equal to the bill.",
            )}
          </p>
          <div className="form">
            <label>
              {say("From")}
              <input className="field" type="date" name="from" defaultValue={dates.start} required />
            </label>
            <label>
              {say("To")}
              <input className="field" type="date" name="to" defaultValue={dates.end} required />
            </label>
          </div>
          <label className="check">
            <input type="checkbox" checked={accept_less} onChange={() => setLess(!accept_less)} />{" "}
            {say("accept bills and usage that are smaller than the stored ones")}
          </label>
          <p className="note">
            {say(
              "Without this, an answer that has less than what is stored is taken for incomplete, and the stored one stays.",
            )}
          </p>
          {reaching ? (
            <ReachesClosed
              of={reaching}
              onRestate={(reason) => run({ restate_closed: true, reason })}
              isPending={start.isPending}
            />
          ) : (
            start.isError && (
              <p role="alert" className="bad">
                {asProblem(start.error).detail}
              </p>
            )
          )}
          <p className="tools">
            <button type="submit" className="button primary" disabled={start.isPending || days < 1}>
              {say("Recalculate {n} {n|day|days}", { n: days })}
            </button>
            <button type="button" className="button" onClick={onClose}>
              {say("Cancel")}
            </button>
          </p>
        </form>
      )}
    </Drawer>
  );
}
