import { useOf } from "../api/questions";
import type { Anomalies, Anomaly } from "../api/shapes";
import { useHere } from "../app/router";
import { count, full, range } from "../format/days";
import { label } from "../format/names";
import { Amount, Card } from "../ui/card";
import { Answered, Bone, Warning } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { HOME } from "../url/link";
import { apiQuery, type View } from "../url/view";

const STATES: Record<Anomaly["state"], [words: string, tone: string]> = {
  open: ["still so", "warn"],
  resolved: ["over", "quiet"],
  level_shift: ["the new level", "quiet"],
};

/** The days on which somebody's costs are not what they usually are, the largest impact first. */
export function AnomaliesPage() {
  const here = useHere();
  const found = useOf(here.tenant ?? "", "/anomalies", {
    query: { ...apiQuery(here.view, { compare: false }), limit: 200 },
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
  const { items, more, currency, series, start_date: start, end_date: end } = answer;
  return (
    <Card title="What stands out" note={`${range(start, end)}, of ${count(series, "series", "series")}`}>
      {doubt(answer)}
      {items.length === 0 ? (
        <p className="note">Nothing: every day costs what its weekday usually does.</p>
      ) : (
        <Table
          className="tall"
          label="Table of what stands out"
          heads={["Who", "Product", "Days", { name: "Impact", end: true }, "What happened", "State"]}
        >
          {items.map((each) => (
            <Story key={each.id} of={each} name={answer.names[each.identity_id] ?? null} currency={currency} />
          ))}
        </Table>
      )}
      {more > 0 && <p className="note">and {count(more, "other")}, with a smaller impact.</p>}
    </Card>
  );
}

/** What is not certain: days that could not be judged. */
function doubt({ not_judged: left }: Anomalies) {
  const [first] = left;
  if (!first) return null;
  return (
    <Warning>
      {count(left.length, "day")} could not be judged, such as {full(first.date)}: {first.reason}.
    </Warning>
  );
}

function Story({ of, name, currency }: { of: Anomaly; name: string | null; currency: string }) {
  const here = useHere();
  const [words, tone] = STATES[of.state];
  const who = label("identity_id", of.identity_id, name).name;
  return (
    <tr>
      <th scope="row">
        <a className="more" href={here.to(costsOf(here.view, of), HOME)} title={of.identity_id}>
          {who}
        </a>
      </th>
      <td>{label("product_category", of.product_category, null).name}</td>
      <td>{range(of.first_date, of.last_date)}</td>
      <td className="end">
        <Amount amount={of.impact.toFixed(2)} currency={currency} />
      </td>
      <td className="wordy">{of.sentence}.</td>
      <td className={tone}>{words}</td>
    </tr>
  );
}

/** The costs of who it is about, beside those of the days before. */
function costsOf(view: View, { identity_id, product_category, first_date, last_date }: Anomaly): View {
  const filters = Object.entries({ identity_id, product_category });
  return {
    ...view,
    period: null,
    start: first_date,
    end: last_date,
    filters: filters.map(([key, value]) => ({ key, value, not: false })),
    extra: {},
  };
}
