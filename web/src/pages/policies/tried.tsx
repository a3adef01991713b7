import { useMutation } from "@tanstack/react-query";
import { address } from "../../api/address";
import { present, useAnswer } from "../../api/answer";
import { send } from "../../api/client";
import { useAccess } from "../../api/me";
import { asProblem } from "../../api/problems";
import { question, useTenant } from "../../api/questions";
import type { Simulation, SimulationBody } from "../../api/shapes";
import type { Day } from "../../calendar/days";
import { range } from "../../format/days";
import { grouped } from "../../format/formats";
import { dimension, label } from "../../format/names";
import { Amount, BeforeAndAfter, Card, Exact } from "../../ui/card";
import { Fact } from "../../ui/fact";
import { Answered, Bone, Empty, Warning } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
import { Apply } from "./apply";
import { Examples } from "./examples";
import { Portions } from "./portions";

type Found = NonNullable<Simulation["answer"]>;
type Item = Found["items"][number];

/** How many groups a list of winners, or of losers, has. */
const MOST = 10;
/** What is not seen in cents is counted, and not listed. */
const SMALLEST = 0.005;
const NOTHING = "0.00";

/** Tries policies, or rules of cost categories, on some days; on those of the tenant that are not later. */
export function useTrial(tenant: string, start: Day, end: Day) {
  const last = present(useTenant(tenant))?.last_date ?? end;
  const asked = useMutation({
    mutationFn: (what: Partial<SimulationBody>) =>
      send<"post", "/simulations">("post", tenant, "/simulations", {
        body: { ...what, start_date: start, end_date: end < last ? end : last },
      }),
  });
  const problem = asked.error && asProblem(asked.error);
  const mistakes = problem?.errors.length ? problem.errors.map((each) => each.message) : problem && [problem.detail];
  return { asked, last, mistakes };
}

/** What a trial has found, when it has. */
export function Tried({ tenant, id }: { tenant: string; id: string }) {
  const asked = question(tenant, "/simulations/{simulation_id}", { at: { simulation_id: id } });
  const found = useAnswer({
    ...asked,
    alone: true,
    again: (simulation?: Simulation) => (simulation?.state === "running" ? 1 : 60),
  });
  return (
    <Answered answer={found} skeleton={<Bone height={20} />}>
      {(simulation) => <State tenant={tenant} simulation={simulation} />}
    </Answered>
  );
}

function State({ tenant, simulation }: { tenant: string; simulation: Simulation }) {
  const { state, done, days, error, answer, id } = simulation;
  if (state === "failed") return <Empty title={say("It could not be simulated")}>{error}</Empty>;
  if (!answer)
    return (
      <p className="note" role="status">
        {days === 0 ? say("It begins soon.") : say("{done} of {n} {n|day|days} calculated.", { done, n: days })}
      </p>
    );
  const file = {
    href: address(tenant, "/simulations/{simulation_id}/items.csv", { at: { simulation_id: id } }),
    name: `${tenant}-simulation.csv`,
  };
  return (
    <>
      <Moved found={answer} file={file} />
      {simulation.asked.policies && <Kept tenant={tenant} id={id} digest={answer.digest} last={answer.end_date} />}
    </>
  );
}

/** The ways on: to put it in force here, or to take it along as a plan. */
function Kept({ tenant, id, digest, last }: { tenant: string; id: string; digest: string; last: string }) {
  const { may } = useAccess(tenant);
  const plan = address(tenant, "/simulations/{simulation_id}", { at: { simulation_id: id } });
  return (
    <>
      <p className="tools">
        <a className="more" href={plan} download={`${tenant}-plan.json`}>
          {say("Download the plan")}
        </a>
      </p>
      {may("admin") && <Apply tenant={tenant} id={id} digest={digest} last={last} />}
    </>
  );
}

/** A sentence for each thing that is not certain. */
function doubts({ left_out, never_measured, never_applied, corrections }: Found): string[] {
  const [first] = left_out;
  const months = [...new Set(corrections.map((each) => each.period_id))];
  return [
    first &&
      say("{n} {n|day|days} could not be simulated, such as {date}: {reason}.", { n: left_out.length, ...first }),
    never_measured.length &&
      say("Never measured: {measures}; what they would split goes to others.", { measures: never_measured.join(", ") }),
    never_applied.length && say("Not on the bill of these days: {products}.", { products: never_applied.join(", ") }),
    months.length &&
      say("To calculate these days so would post corrections of closed months: {months}.", {
        months: months.join(", "),
      }),
  ].filter((each): each is string => typeof each === "string");
}

function Moved({ found, file }: { found: Found; file: { href: string; name: string } }) {
  const { currency } = found;
  const seen = found.items.filter((each) => Math.abs(Number(each.delta)) >= SMALLEST);
  const more = seen.filter((each) => !each.delta.startsWith("-"));
  const less = seen.filter((each) => each.delta.startsWith("-"));
  const rest = found.items.length - seen.length;
  return (
    <>
      <Card title={say("What would move")} note={range(found.start_date, found.end_date)} file={file}>
        <dl className="facts-list">
          <Fact name={say("Billed")}>
            <Exact amount={found.billed} currency={currency} />
          </Fact>
          <Fact name={say("Charged to others")}>
            <Exact amount={found.moved} currency={currency} />
          </Fact>
          <Fact name={say("Part of the bill")}>
            <span className="num">{grouped(found.moved_share)} %</span>
          </Fact>
          <Fact name={say("Charged to nobody now")}>
            <Exact amount={found.unallocated.before} currency={currency} />
          </Fact>
          <Fact name={say("Charged to nobody then")}>
            <Exact amount={found.unallocated.after} currency={currency} />
          </Fact>
        </dl>
        {doubts(found).map((each) => (
          <Warning key={each}>{each}</Warning>
        ))}
        {found.items.length === 0 && <p className="note">{say("No amount would move.")}</p>}
        {rest > 0 && (
          <p className="note">
            {say("The cost of {n} {n|group|groups} changes by less than half a cent.", { n: rest })}
          </p>
        )}
      </Card>
      {found.policies.length > 0 && <Differing found={found} />}
      {more.length > 0 && <Groups title={say("Who would pay more")} items={more} found={found} />}
      {less.length > 0 && <Groups title={say("Who would pay less")} items={less} found={found} />}
      <Examples of={found.examples} currency={currency} />
    </>
  );
}

/** What differs in the policies, with what each moves. */
function Differing({ found: { policies, currency, by_cause: causes } }: { found: Found }) {
  return (
    <Card title={say("What differs")} note={say("{n} {n|product|products}", { n: policies.length })}>
      <Table
        label={say("Table of what differs")}
        heads={[
          say("Product"),
          say("Now"),
          say("Then"),
          { name: say("Amount"), end: true },
          { name: say("Moves"), end: true },
        ]}
      >
        {policies.map((each) => (
          <tr key={each.product_type}>
            <th scope="row">{each.product_type}</th>
            <td className="portions-of">
              <Portions of={each.before} />
            </td>
            <td className="portions-of">
              <Portions of={each.after} />
            </td>
            <td className="end">
              <Amount amount={each.cost} currency={currency} />
            </td>
            <td className="end">
              <Amount amount={each.moved} currency={currency} />
            </td>
          </tr>
        ))}
      </Table>
      {causes.proportional !== NOTHING && (
        <p className="note">
          {say("{amount} follows: it is split in proportion to other costs.", {
            amount: <Amount amount={causes.proportional} currency={currency} />,
          })}
        </p>
      )}
    </Card>
  );
}

function Groups({ title, items, found }: { title: string; items: readonly Item[]; found: Found }) {
  const { currency, group_by: by, names } = found;
  const rest = items.length - MOST;
  return (
    <Card title={title} note={say("{n} {n|group|groups}", { n: items.length })}>
      <Table
        label={say("Table: {title}", { title })}
        heads={[
          ...by.map(dimension),
          { name: say("Now"), end: true },
          { name: say("Then"), end: true },
          { name: say("Change"), end: true },
          { name: say("Percent"), end: true },
        ]}
      >
        {items.slice(0, MOST).map((each) => (
          <tr key={JSON.stringify(each.dimensions)}>
            {by.map((column, n) => {
              const value = each.dimensions[column] ?? null;
              const { name } = label(column, value, value === null ? null : (names[column]?.[value] ?? null));
              return n === 0 ? (
                <th key={column} scope="row">
                  {name}
                </th>
              ) : (
                <td key={column}>{name}</td>
              );
            })}
            <BeforeAndAfter before={each.before} after={each.after} delta={each.delta} currency={currency} />
            <td className="end num">{each.percent === null ? say("new [an amount]") : `${grouped(each.percent)} %`}</td>
          </tr>
        ))}
      </Table>
      {rest > 0 && <p className="note">{say("and {n} {n|other|others}, which change by less.", { n: rest })}</p>}
    </Card>
  );
}
