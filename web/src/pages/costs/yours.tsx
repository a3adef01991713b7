import { useAccess } from "../../api/me";
import { useOf } from "../../api/questions";
import type { Budget } from "../../api/shapes";
import { useHere } from "../../app/router";
import { BUDGET_STATES } from "../../format/budgets";
import { isTold } from "../../format/stories";
import { read } from "../../money/money";
import { Amount, Card, share } from "../../ui/card";
import { Answered } from "../../ui/states";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";

const RECENT = "14d";
const MOST = 3;

/** What an owner of a part of the costs looks at first: the own budgets, what stands out, and the statement. */
export function Yours() {
  const here = useHere();
  const tenant = here.tenant ?? "";
  const { isKnown, seesAll } = useAccess(tenant);
  const isOwner = isKnown && !seesAll;
  const budgets = useOf(tenant, "/budgets", { query: { page_size: 20 } }, isOwner);
  const found = useOf(tenant, "/anomalies", { query: { period: RECENT, limit: MOST } }, isOwner);
  if (!isOwner) return null;
  const plain = { ...here.view, filters: [], period: null, start: null, end: null, by: null, extra: {} };
  return (
    <Card
      title={say("Yours")}
      action={
        <a className="button" href={here.to(plain, "statement")}>
          {say("Your statements")}
        </a>
      }
    >
      <div className="plain-list">
        <Answered answer={budgets} skeleton={null}>
          {({ items }) => items.map((each) => <OfBudget key={each.id} budget={each} />)}
        </Answered>
        <Answered answer={found} skeleton={null}>
          {({ items, more }) => {
            const told = items.filter(isTold);
            return (
              <>
                {told.map((each) => (
                  <p key={each.id}>
                    <a className="more" href={here.to({ ...plain, period: RECENT }, "anomalies")}>
                      {say("Stands out")}
                    </a>
                    : {reworded(each.sentence)}.
                  </p>
                ))}
                {told.length === 0 && <p className="quiet">{say("Nothing stands out in the last 14 days.")}</p>}
                {more > 0 && <p className="quiet">{say("and {n} {n|other|others}", { n: more })}</p>}
              </>
            );
          }}
        </Answered>
      </div>
    </Card>
  );
}

function OfBudget({ budget }: { budget: Budget }) {
  const here = useHere();
  const { status } = budget;
  const [words, tone] = BUDGET_STATES[status.state];
  const spent = <Amount amount={read(status.to_date)} currency={status.currency} />;
  return (
    <p>
      <a className="more" href={here.to({ ...here.view, filters: [], extra: {} }, "budgets")}>
        {budget.name}
      </a>
      :{" "}
      {status.budget === null
        ? spent
        : say("{amount} of {budget} ({percent})", {
            amount: spent,
            budget: <Amount amount={read(status.budget)} currency={status.currency} />,
            percent: share(read(status.to_date), read(status.budget)),
          })}
      , <span className={tone}>{words}</span>
    </p>
  );
}
