import { useRevisions } from "../../api/questions";
import type { Reconciled, Revision } from "../../api/shapes";
import { useHere } from "../../app/router";
import { STATES } from "../../charts/calendar";
import { instant, spoken } from "../../format/days";
import { exact } from "../../format/money";
import { cause } from "../../format/names";
import { Amount, Exact } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { Fact } from "../../ui/fact";
import { Answered, Bone } from "../../ui/states";
import { during, readView } from "../../url/view";
import { say } from "../../words/say";

interface Props {
  day: Reconciled;
  currency: string;
  onClose: () => void;
}

/** One day: its figures, and everything that it has contained before. */
export function DayDrawer({ day, currency, onClose }: Props) {
  const here = useHere();
  const query = useRevisions(here.tenant ?? "", day.date);
  return (
    <Drawer title={spoken(day.date)} onClose={onClose}>
      <dl className="facts-list">
        <Fact name={say("State")}>{STATES[day.state]}</Fact>
        <Fact name={say("Billed, in {n} lines", { n: day.lines })}>
          <Exact amount={day.billed} currency={currency} />
        </Fact>
        <Fact name={say("Charged, in {n} rows", { n: day.rows })}>
          <Exact amount={day.charged} currency={currency} />
        </Fact>
        <Fact name={say("No owner")}>
          <Exact amount={day.unallocated} currency={currency} />
        </Fact>
        <Fact name={say("Policies")}>{POLICIES[day.policies ?? ""] ?? say("not known")}</Fact>
        <Fact name={say("Bill fetched")}>{day.gathered_at ? instant(day.gathered_at) : say("not yet")}</Fact>
        <Fact name={say("Its fingerprint")}>
          <span className="small">{day.fingerprint?.slice(0, 16) ?? "–"}</span>
        </Fact>
      </dl>
      <h3>{say("What it has contained")}</h3>
      <Answered answer={query} skeleton={<Bone height={8} />}>
        {({ items }) => {
          const charges = items.filter((each) => each.dataset === "chargebacks");
          if (charges.length === 0) return <p className="note">{say("It has not been calculated yet.")}</p>;
          return (
            <ol className="steps" aria-label={say("Revisions, the latest first")}>
              {[...charges].reverse().map((each, n) => (
                <li key={each.revision}>
                  <RevisionFacts revision={each} day={day.date} currency={currency} isPresent={n === 0} />
                </li>
              ))}
            </ol>
          );
        }}
      </Answered>
    </Drawer>
  );
}

export const POLICIES: Record<string, string> = {
  current: say("as they are configured now"),
  superseded: say("others than those configured now"),
};

function RevisionFacts({
  revision,
  day,
  currency,
  isPresent,
}: {
  revision: Revision;
  day: string;
  currency: string;
  isPresent: boolean;
}) {
  const here = useHere();
  const at = revision.calculated_at;
  const number = String(revision.revision);
  const then = { ...during(readView(""), day, day), extra: { as_of: at } };
  const since = { ...during(readView(""), day, day), extra: { from: at } };
  return (
    <>
      <h4>
        {say("Revision {number}", { number })}
        {isPresent && <span className="badge">{say("present [a revision]")}</span>}
      </h4>
      <p>
        {cause(revision.cause)}, {instant(at)}
      </p>
      <p className="note">
        {revision.total !== null &&
          say("{amount} in {n} rows", {
            amount: <Amount amount={revision.total} currency={currency} />,
            n: revision.rows,
          })}
        {revision.moved !== null && <span title={exact(revision.moved, currency)}>; </span>}
        {revision.moved !== null &&
          say("{amount} moved", { amount: <Amount amount={revision.moved} currency={currency} /> })}
      </p>
      {!isPresent && (
        <p className="tools">
          {revision.is_kept ? (
            <>
              <a className="more" href={here.to(then, "rows")}>
                {say("As it was then")}
                <span className="sr">{say(", revision {number}", { number })}</span>
              </a>
              <a className="more" href={here.to(since, "moments")}>
                {say("What changed since")}
                <span className="sr">{say(" revision {number}", { number })}</span>
              </a>
            </>
          ) : (
            <span className="note">{say("Its rows are no longer kept.")}</span>
          )}
        </p>
      )}
    </>
  );
}
