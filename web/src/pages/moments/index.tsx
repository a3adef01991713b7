import { useDifference } from "../../api/questions";
import type { Difference } from "../../api/shapes";
import { useHere } from "../../app/router";
import { instant } from "../../format/days";
import { exact, signed } from "../../format/money";
import { cause, dimension, label } from "../../format/names";
import { read } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { Dimensions } from "../../ui/dimensions";
import { Answered, Bone, Empty } from "../../ui/states";
import { Table } from "../../ui/table";
import { Toolbar } from "../../ui/toolbar";
import { isMoment } from "../../url/moment";
import { toggle } from "../../url/view";
import { say } from "../../words/say";
import { Choose } from "./choose";

const CHOICES = ["identity_id", "resource_id", "product_type", "environment_id"];

/** What was served at one moment beside what is served at another, by default now. */
export function MomentsPage() {
  const { view } = useHere();
  const from = view.extra.from && isMoment(view.extra.from) ? view.extra.from : null;
  const to = view.extra.to && isMoment(view.extra.to) ? view.extra.to : null;
  return (
    <>
      <Toolbar compare={false} list="/chargebacks/diff" />
      <Choose key={`${from} ${to}`} from={from} to={to} />
      {from ? (
        <Compared from={from} to={to} />
      ) : (
        <Empty title={say("Choose a moment")}>
          <p>{say("A day’s history, on the page of days, has the moments at which it changed.")}</p>
        </Empty>
      )}
    </>
  );
}

function Compared({ from, to }: { from: string; to: string | null }) {
  const here = useHere();
  const by = here.view.by ?? "identity_id";
  const query = useDifference(here.tenant ?? "", here.view, from, to, by);
  return (
    <Answered answer={query} skeleton={<Bone height={20} />}>
      {(found, { from, to, by }) => (
        <Card
          title={found.items.length ? say("{n} {n|change|changes}", { n: changesOf(found) }) : say("Nothing changed")}
          note={
            to
              ? say("between {from} and {to}", { from: instant(from), to: instant(to) })
              : say("between {from} and now", { from: instant(from) })
          }
          action={<Dimensions label={say("By [grouped]")} by={by} choices={CHOICES} />}
        >
          {found.items.length === 0 ? (
            <p className="note">{say("The days of this period are charged as they were then.")}</p>
          ) : (
            <Changes found={found} by={by} />
          )}
        </Card>
      )}
    </Answered>
  );
}

function changesOf(found: Difference): number {
  return found.items.length + (found.other?.count ?? 0);
}

function Changes({ found, by }: { found: Difference; by: string }) {
  const here = useHere();
  const { currency } = found;
  return (
    <Table
      className="tall"
      label={say("Table of changes")}
      heads={[
        dimension(by),
        { name: say("Then [at that moment]"), end: true },
        { name: say("Later"), end: true },
        { name: say("Change [of an amount]"), end: true },
        say("Why"),
      ]}
      foot={
        <tr>
          <th scope="row">{say("Everything")}</th>
          <td className="end">
            <Amount amount={found.total_before} currency={currency} />
          </td>
          <td className="end">
            <Amount amount={found.total_after} currency={currency} />
          </td>
          <td className="end">
            <Changed amount={found.delta} currency={currency} />
          </td>
          <td className="quiet">
            {say("{amount} moved", { amount: <Amount amount={found.moved} currency={currency} /> })}
          </td>
        </tr>
      }
    >
      {found.items.map((each) => {
        const value = each.dimensions[by] ?? null;
        const { name } = label(by, value, null);
        return (
          <tr key={value}>
            <th scope="row">
              {value === null ? (
                name
              ) : (
                <a className="more" href={here.to(toggle(here.view, by, value))}>
                  {name}
                </a>
              )}
            </th>
            <td className="end">
              <Amount amount={each.before} currency={currency} />
            </td>
            <td className="end">
              <Amount amount={each.after} currency={currency} />
            </td>
            <td className="end">
              <Changed amount={each.delta} currency={currency} />
            </td>
            <td className="quiet why">{each.causes.map(cause).join("; ")}</td>
          </tr>
        );
      })}
      {found.other && (
        <tr>
          <th scope="row">{say("{n} {n|other|others}", { n: found.other.count })}</th>
          <td className="end">
            <Amount amount={found.other.before} currency={currency} />
          </td>
          <td className="end">
            <Amount amount={found.other.after} currency={currency} />
          </td>
          <td className="end">
            <Changed amount={found.other.delta} currency={currency} />
          </td>
          <td />
        </tr>
      )}
    </Table>
  );
}

function Changed({ amount, currency }: { amount: string; currency: string }) {
  return (
    <span className="num" title={exact(amount, currency)}>
      {signed(read(amount), currency)}
    </span>
  );
}
