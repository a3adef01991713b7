import { useAccess } from "../../api/me";
import { useOf } from "../../api/questions";
import type { Budget } from "../../api/shapes";
import { useHere } from "../../app/router";
import { BUDGET_STATES } from "../../format/budgets";
import { count } from "../../format/days";
import { isTold } from "../../format/stories";
import { read } from "../../money/money";
import { Amount, Card, share } from "../../ui/card";
import { Answered } from "../../ui/states";

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
      title="Yours"
      action={
        <a className="button" href={here.to(plain, "statement")}>
          Your statements
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
                      Stands out
                    </a>
                    : {each.sentence}.
                  </p>
                ))}
                {told.length === 0 && <p className="quiet">Nothing stands out in the last 14 days.</p>}
                {more > 0 && <p className="quiet">and {count(more, "other")}</p>}
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
  return (
    <p>
      <a className="more" href={here.to({ ...here.view, filters: [], extra: {} }, "budgets")}>
        {budget.name}
      </a>
      : <Amount amount={read(status.to_date)} currency={status.currency} />
      {status.budget !== null && (
        <>
          {" "}
          of <Amount amount={read(status.budget)} currency={status.currency} /> (
          {share(read(status.to_date), read(status.budget))})
        </>
      )}
      , <span className={tone}>{words}</span>
    </p>
  );
}
