import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { address } from "../api/address";
import { send } from "../api/client";
import { useOf } from "../api/questions";
import type { Anomalies, Anomaly, AnomalyMark } from "../api/shapes";
import { useCanTag } from "../api/tagging";
import { remember } from "../app/memory";
import { useHere } from "../app/router";
import { full, range } from "../format/days";
import { label } from "../format/names";
import { filtersOf } from "../format/stories";
import { AuthorField } from "../ui/author";
import { Amount, Card } from "../ui/card";
import { Drawer } from "../ui/drawer";
import { texts } from "../ui/form";
import { Refusal } from "../ui/refusal";
import { RemoveButton } from "../ui/remove";
import { Answered, Bone, Warning } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { HOME } from "../url/link";
import { apiQuery, extra, type View } from "../url/view";
import { reworded } from "../words/reworded";
import { say } from "../words/say";

const MARKS = "/anomalies/marks";

const STATES: Record<Anomaly["state"], [words: string, tone: string]> = {
  open: [say("still so"), "warn"],
  resolved: [say("over [it has ended]"), "quiet"],
  level_shift: [say("the new level"), "quiet"],
};

const STATUSES: Record<AnomalyMark["status"], string> = {
  planned: say("planned"),
  expected: say("expected"),
  dismissed: say("a false alarm"),
  confirmed: say("confirmed"),
};
const CHOICES: [AnomalyMark["status"], string][] = [
  ["expected", say("Expected: it is usual for them")],
  ["planned", say("Planned: somebody wanted it")],
  ["dismissed", say("A false alarm")],
  ["confirmed", say("Confirmed: it was worth telling")],
];

/** The days on which somebody's costs are not what they usually are, the largest impact first. */
export function AnomaliesPage() {
  const here = useHere();
  const found = useOf(here.tenant ?? "", "/anomalies", {
    query: { ...apiQuery(here.view, { compare: false }), limit: 200, include: ["contributors"] },
  });
  return (
    <>
      <Toolbar compare={false} filters={false} />
      <Answered answer={found} skeleton={<Bone height={20} />}>
        {(answer) => <Stories answer={answer} />}
      </Answered>
    </>
  );
}

function Stories({ answer }: { answer: Anomalies }) {
  const { items, more, drifts, fees, currency, series, start_date: start, end_date: end } = answer;
  const [marking, setMarking] = useState<Anomaly | null>(null);
  const can = useCanTag(useHere().tenant ?? "");
  return (
    <Card
      title={say("What stands out")}
      note={say("{days}, of {n} {n|series|series}", { days: range(start, end), n: series })}
    >
      {doubt(answer)}
      {items.length === 0 ? (
        <p className="note">{say("Nothing: every day costs what its weekday usually does.")}</p>
      ) : (
        <Table
          className="tall"
          label={say("Table of what stands out")}
          heads={[
            say("Who"),
            say("Product"),
            say("Days"),
            { name: say("Impact"), end: true },
            say("What happened"),
            say("State"),
            say("Known"),
          ]}
        >
          {items.map((each) => (
            <Story key={each.id} of={each} answer={answer} onMark={can ? () => setMarking(each) : null} />
          ))}
        </Table>
      )}
      {more > 0 && <p className="note">{say("and {n} {n|other|others}, with a smaller impact.", { n: more })}</p>}
      {drifts.length > 0 && (
        <>
          <h3>{say("Has moved slowly")}</h3>
          <Table
            label={say("Table of what has moved slowly")}
            heads={[
              say("Who"),
              say("Product"),
              { name: say("A day before"), end: true },
              { name: say("A day now"), end: true },
            ]}
          >
            {drifts.map((each) => (
              <tr key={`${each.identity_id} ${each.product_category}`}>
                <th scope="row">
                  {label("identity_id", each.identity_id, answer.names[each.identity_id] ?? null).name}
                </th>
                <td>{label("product_category", each.product_category, null).name}</td>
                <Moved of={each} currency={currency} />
              </tr>
            ))}
          </Table>
        </>
      )}
      {fees.length > 0 && (
        <>
          <h3>{say("Fees that have changed")}</h3>
          <Table
            label={say("Table of fees that have changed")}
            heads={[
              say("Product"),
              say("Resource"),
              { name: say("The month before"), end: true },
              { name: say("Now"), end: true },
            ]}
          >
            {fees.map((each) => (
              <tr key={`${each.product_type} ${each.resource_id}`}>
                <th scope="row">{label("product_type", each.product_type, null).name}</th>
                <td>{label("resource_id", each.resource_id, answer.resource_names[each.resource_id]).name}</td>
                <Moved of={each} currency={currency} />
              </tr>
            ))}
          </Table>
        </>
      )}
      {marking && <MarkDialog of={marking} who={whoOf(marking, answer.names)} onClose={() => setMarking(null)} />}
    </Card>
  );
}

/** What something cost before, and what it costs now. */
function Moved({ of: { before, now }, currency }: { of: { before: number; now: number }; currency: string }) {
  return (
    <>
      <td className="end">
        <Amount amount={before.toFixed(2)} currency={currency} />
      </td>
      <td className="end">
        <Amount amount={now.toFixed(2)} currency={currency} />
      </td>
    </>
  );
}

/** What is not certain: days that could not be judged. */
function doubt({ not_judged: left }: Anomalies) {
  const [first] = left;
  if (!first) return null;
  return (
    <Warning>
      {say("{n} {n|day|days} could not be judged, such as {day}: {reason}.", {
        n: left.length,
        day: full(first.date),
        reason: first.reason,
      })}
    </Warning>
  );
}

interface StoryProps {
  of: Anomaly;
  answer: Anomalies;
  /** Nothing for who may not say what is known. */
  onMark: (() => void) | null;
}

function Story({ of, answer, onMark }: StoryProps) {
  const here = useHere();
  const who = whoOf(of, answer.names);
  const [words, tone] = STATES[of.state];
  return (
    <tr>
      <th scope="row">
        <a className="more" href={here.to(costsOf(here.view, of), HOME)} title={of.identity_id ?? of.category ?? ""}>
          {who}
        </a>
      </th>
      <td>
        {of.product_category === null
          ? say("all [products]")
          : label("product_category", of.product_category, null).name}
      </td>
      <td className="num">{range(of.first_date, of.last_date)}</td>
      <td className="end">
        <Amount amount={of.impact.toFixed(2)} currency={answer.currency} />
      </td>
      <td className="wordy">
        {reworded(of.sentence)}.
        <Contributors of={of} answer={answer} />
      </td>
      <td className={tone}>{becauseOf(of) ?? words}</td>
      <td>
        {of.mark && <Mark of={of.mark} onRemove={onMark !== null} />}
        {!of.mark && onMark && (
          <button type="button" className="more" onClick={onMark}>
            {say("Expected?")}
            <span className="sr"> {who}</span>
          </button>
        )}
      </td>
    </tr>
  );
}

/** Who it is about: an identity by its name, or a value of a cost category. */
function whoOf({ identity_id, value }: Anomaly, names: Anomalies["names"]): string {
  return identity_id === null ? (value ?? "") : label("identity_id", identity_id, names[identity_id] ?? null).name;
}

/** Why nobody is told of it, in words; nothing if somebody is. */
function becauseOf({ by_policy, growth_of, others_used_more, goes_with }: Anomaly): string | null {
  if (by_policy) return say("split by another policy");
  if (growth_of !== null) return say("{name} has grown as much", { name: growth_of });
  if (others_used_more) return say("others used more");
  return goes_with === null ? null : say("part of another one");
}

/** What it comes from, each with the way to why it is that much. */
function Contributors({ of, answer }: { of: Anomaly; answer: Anomalies }) {
  const here = useHere();
  const { names, resource_names, currency } = answer;
  return of.contributors.map(({ identity_id, product_type, resource_id, impact, explain }) => {
    const whose = of.identity_id === null ? `${label("identity_id", identity_id, names[identity_id]).name}: ` : "";
    const product = label("product_type", product_type, null).name;
    const resource = label("resource_id", resource_id, resource_names[resource_id]).name;
    const text = whose + say("{product} of {resource}", { product, resource });
    const asked = explain?.split("?")[1];
    return (
      <div className="quiet small" key={`${identity_id} ${product_type} ${resource_id}`}>
        {asked ? (
          <a className="more" href={here.to(extra(costsOf(here.view, of), "why", asked), "rows")}>
            {text}
          </a>
        ) : (
          text
        )}
        : <Amount amount={impact.toFixed(2)} currency={currency} />
      </div>
    );
  });
}

/** What somebody knows of it. */
function Mark({ of, onRemove }: { of: AnomalyMark; onRemove: boolean }) {
  const tenant = useHere().tenant ?? "";
  return (
    <>
      {STATUSES[of.status]}: {of.note}
      <div className="quiet small">
        {of.created_by}, {range(of.start_date, of.end_date)}
      </div>
      {onRemove && (
        <RemoveButton
          href={address<"/anomalies/marks/{number}", "delete">(tenant, `${MARKS}/{number}`, {
            at: { number: String(of.id) },
          })}
          what={say("what {who} says of it", { who: of.created_by })}
        />
      )}
    </>
  );
}

/** Say what is known of the days, for those who see them later; most of it keeps others from being told. */
function MarkDialog({ of, who, onClose }: { of: Anomaly; who: string; onClose: () => void }) {
  const tenant = useHere().tenant ?? "";
  const client = useQueryClient();
  const mark = useMutation({
    mutationFn: (said: Record<"status" | "until" | "note" | "author", string>) =>
      send("post", tenant, MARKS, {
        body: {
          identity_id: of.identity_id,
          category: of.category,
          value: of.value,
          product_category: of.product_category,
          status: CHOICES.find(([status]) => status === said.status)?.[0] ?? "expected",
          start_date: of.first_date,
          end_date: said.until,
          note: said.note,
          created_by: said.author,
        },
      }),
    onSuccess: () => {
      void client.invalidateQueries();
      onClose();
    },
  });
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const said = texts(event.currentTarget, "status", "until", "note", "author");
    remember("author", said.author);
    mark.mutate(said);
  };
  return (
    <Drawer title={say("What is known of {name}", { name: who })} onClose={onClose}>
      <p className="note">{reworded(of.sentence)}.</p>
      <form className="form" onSubmit={onSubmit}>
        <label>
          {say("It was")}
          <select className="field" name="status" defaultValue="expected">
            {CHOICES.map(([status, words]) => (
              <option key={status} value={status}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          {say("Until and with this day")}
          <input className="field" name="until" type="date" required min={of.first_date} defaultValue={of.last_date} />
        </label>
        <label>
          {say("Why")}
          <input className="field" name="note" required maxLength={255} autoComplete="off" />
        </label>
        <AuthorField maxLength={255} />
        <p className="note">
          {say(
            "Unless it is confirmed, nobody is told what stands out on these days, and no later day is compared with them.",
          )}
        </p>
        <button type="submit" className="button primary" disabled={mark.isPending}>
          {say("Say so")}
        </button>
        <Refusal of={mark} />
      </form>
    </Drawer>
  );
}

/** The costs of who it is about, beside those of the days before. */
function costsOf(view: View, of: Anomaly): View {
  const { first_date, last_date } = of;
  return {
    ...view,
    period: null,
    start: first_date,
    end: last_date,
    filters: filtersOf(of),
    extra: {},
  };
}
