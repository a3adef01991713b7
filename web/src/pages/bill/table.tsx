import type { ReactNode } from "preact/compat";
import type { Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { lastOfMonth } from "../../calendar/days";
import { brief, month } from "../../format/days";
import { dimension, label } from "../../format/names";
import type { Units } from "../../money/money";
import { Amount, Exact, share } from "../../ui/card";
import { Warning } from "../../ui/states";
import { Table } from "../../ui/table";
import { during, readView } from "../../url/view";
import { say } from "../../words/say";
import { filterValue, keyOf } from "../costs/facts";
import { Budgeted, useBudgets } from "./budgets";
import type { Line, Statement } from "./statement";

interface Props {
  found: Statement;
  columns: readonly string[];
  months: readonly string[];
  tenant: Tenant;
  names: Record<string, Record<string, string>>;
}

/** A line for each value and a column for each month; lines and columns add up exactly. */
export function StatementTable({ found, columns, months, tenant, names }: Props) {
  const { view } = useHere();
  const [by = ""] = columns;
  const cents = view.extra.digits === "cents";
  const amount = (units: Units) =>
    cents ? <Amount amount={units} currency={tenant.currency} /> : <Exact amount={units} currency={tenant.currency} />;
  const heads = months.map((each) => ({ name: month(each), note: partOf(each, tenant), end: true as const }));
  const several = months.length > 1;
  const only = months.length === 1 && view.filters.length === 0 ? months[0] : undefined;
  const budgets = useBudgets(tenant.tenant_name, by, only?.slice(0, 7) ?? null);
  return (
    <>
      {!found.isWhole && (
        <Warning>
          {say(
            "There are too many sums for one answer: the oldest months are not all here. Choose fewer months, or filters.",
          )}
        </Warning>
      )}
      <Table
        label={say("The bill")}
        heads={[
          dimension(by),
          ...heads,
          several && { name: say("Total"), end: true },
          { name: say("Share"), end: true },
          budgets.size > 0 && { name: say("Budget"), end: true },
        ]}
        foot={
          <tr>
            <th scope="row">{say("Total")}</th>
            <Amounts of={found} several={several} write={amount} />
            <td className="end num">{share(found.total, found.total)}</td>
            {budgets.size > 0 && <td />}
          </tr>
        }
      >
        {found.lines.map((line) => (
          <Lines key={keyOf(line.value)} line={line} columns={columns} names={names} months={months}>
            {(each) => (
              <>
                <Amounts of={each} several={several} write={amount} />
                <td className="end num quiet">{share(each.total, found.total)}</td>
                {budgets.size > 0 && (
                  <td className="end">
                    <Budgeted total={each.total} budget={each === line ? budgets.get(keyOf(line.value)) : undefined} />
                  </td>
                )}
              </>
            )}
          </Lines>
        ))}
      </Table>
      {cents && (
        <p className="note foot-note">
          {say("Each amount is rounded by itself; the sums are those of exact amounts.")}
        </p>
      )}
    </>
  );
}

/** Which days of a month are there, if not all of them. */
function partOf(first: string, { first_date, last_date }: Tenant): string | undefined {
  const end = lastOfMonth(first);
  const late = first_date !== null && first_date > first && first_date <= end;
  const early = last_date !== null && last_date < end && last_date >= first;
  if (late && early) return `${brief(first_date)} – ${brief(last_date)}`;
  if (late) return say("from {day}", { day: brief(first_date) });
  return early ? say("to {day}", { day: brief(last_date) }) : undefined;
}

interface Sums {
  of: { amounts: readonly Units[]; total: Units };
  several: boolean;
  write: (units: Units) => ReactNode;
}

function Amounts({ of, several, write }: Sums) {
  return (
    <>
      {of.amounts.map((each, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a month is known by its place
        <td key={n} className="end">
          {each === 0n ? <Nothing /> : write(each)}
        </td>
      ))}
      {several && <td className="end sum">{write(of.total)}</td>}
    </>
  );
}

function Nothing() {
  return (
    <span className="decimals quiet">
      –<span />
    </span>
  );
}

interface LinesProps {
  line: Line;
  columns: readonly string[];
  names: Props["names"];
  months: readonly string[];
  children: (line: Line) => ReactNode;
}

function Lines({ line, columns, names, months, children }: LinesProps) {
  const here = useHere();
  const [by = "", part = ""] = columns;
  const { name, id } = label(by, line.value, line.value === null ? null : names[by]?.[line.value]);
  const subject = { key: by, value: filterValue(by, line.value), not: false };
  const others = here.view.filters.filter((each) => each.key !== by);
  const own = {
    ...during(readView(""), months[0] ?? "", lastOfMonth(months.at(-1) ?? "")),
    filters: [subject, ...others],
  };
  const ofPart = (value: string | null) => ({ key: part, value: filterValue(part, value), not: false });
  return (
    <>
      <tr className={line.parts.length ? "group" : undefined}>
        <th scope="row">
          <a className="more" href={here.to(own, "item")}>
            {name}
          </a>
          {id && <span className="quiet small"> {id}</span>}
        </th>
        {children(line)}
      </tr>
      {line.parts.map((each) => (
        <tr key={keyOf(each.value)} className="part">
          <th scope="row" title={each.value ?? ""}>
            <a href={here.to({ ...own, filters: [...own.filters, ofPart(each.value)] }, "rows")}>
              {label(part, each.value).name}
              <span className="sr">{say(" of {name}: rows", { name })}</span>
            </a>
          </th>
          {children(each)}
        </tr>
      ))}
    </>
  );
}
