import { address } from "../../api/address";
import { asking, useAnswer } from "../../api/answer";
import { type Register, useRegisters } from "../../api/categories";
import { useAccess } from "../../api/me";
import { question, sumsOf, useTenant } from "../../api/questions";
import type { Aggregate, Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { monthsOf } from "../../calendar/days";
import { monthRange } from "../../format/days";
import { amid, categoryOf, dimension, isCategory } from "../../format/names";
import { at } from "../../money/money";
import { Card } from "../../ui/card";
import { Dimensions } from "../../ui/dimensions";
import { Icon } from "../../ui/icons";
import { NothingHere } from "../../ui/nothing";
import { Answered, Bone, Empty } from "../../ui/states";
import { Toolbar } from "../../ui/toolbar";
import { billed, type Dates } from "../../url/period";
import { during, extra } from "../../url/view";
import { say } from "../../words/say";
import { leadingTag, USUAL } from "../costs/facts";
import { statement } from "./statement";
import { StatementTable } from "./table";
import { MonthsAgainstTheBill } from "./tieout";

const PARTS = "product_type";

/** The statement: what each team, identity or other value costs in each month, to the last digit. */
export function BillPage() {
  const { tenant: name } = useHere();
  const tenant = useTenant(name ?? "");
  return (
    <Answered answer={tenant} skeleton={<Bone height={30} />}>
      {(found) => (found.last_date ? <Bill tenant={found} last={found.last_date} /> : <NothingYet />)}
    </Answered>
  );
}

function NothingYet() {
  return (
    <Empty title={say("There is no bill yet")}>
      <p>{say("It appears when the first day is calculated. [the bill]")}</p>
    </Empty>
  );
}

function Bill({ tenant, last }: { tenant: Tenant; last: string }) {
  const here = useHere();
  const dates = billed(here.view, tenant.first_date, last);
  const by = here.view.by ?? leadingTag(tenant) ?? "identity_id";
  const parted = here.view.extra.parts !== undefined && by !== PARTS;
  const columns = parted ? [by, PARTS] : [by];
  const asked = sumsOf(during(here.view, dates.start, dates.end), columns, "month");
  const shown = { columns, dates, isWhole: here.view.filters.length === 0 };
  const found = useAnswer(asking(question(tenant.tenant_name, "/chargebacks/aggregate", asked), shown));
  const file = {
    href: address(tenant.tenant_name, "/chargebacks/aggregate.csv", asked),
    name: `${tenant.tenant_name}-bill-${dates.start.slice(0, 7)}-${dates.end.slice(0, 7)}.csv`,
  };
  return (
    <>
      <Toolbar
        shown={dates}
        usual={say("The last whole month")}
        compare={false}
        file={file}
        list="/chargebacks/aggregate"
      >
        <button type="button" className="button" onClick={() => print()}>
          <Icon name="print" />
          <span className="narrow-sr">{say("Print")}</span>
        </button>
      </Toolbar>
      <Answered answer={found} skeleton={<Bone height={30} />}>
        {(answer, of) => <Months tenant={tenant} answer={answer} {...of} />}
      </Answered>
    </>
  );
}

interface MonthsProps {
  tenant: Tenant;
  answer: Aggregate;
  columns: readonly string[];
  dates: Dates;
  /** Whether it is of the whole tenant, which can be compared with the provider's bill. */
  isWhole: boolean;
}

function Months({ tenant, answer, columns, dates, isWhole }: MonthsProps) {
  const { seesAll } = useAccess(tenant.tenant_name);
  const named = namesOf(columns, useRegisters(tenant.tenant_name, columns));
  const months = monthsOf(dates.start, dates.end);
  const when = monthRange(dates.start, dates.end);
  const by = at(columns, 0);
  if (answer.total_rows === 0)
    return <NothingHere title={say("No costs in this bill")} when={when} way={say("Show the last whole month")} />;
  return (
    <Card
      className="bill"
      title={say("Bill of {name}, {months}", { name: tenant.tenant_name, months: when })}
      note={say("by {dimension}, in {currency}", {
        dimension: amid(dimension(by)),
        currency: answer.currency,
      })}
      action={<Choices tenant={tenant} by={by} parted={columns.length > 1} />}
    >
      <StatementTable
        found={statement(answer, columns, months)}
        columns={columns}
        months={months}
        tenant={tenant}
        names={{ ...answer.names, ...named }}
      />
      {seesAll && isWhole && <MonthsAgainstTheBill tenant={tenant} dates={dates} total={answer.total_amount} />}
    </Card>
  );
}

function Choices({ tenant, by, parted }: { tenant: Tenant; by: string; parted: boolean }) {
  const here = useHere();
  const choices = [...tenant.tag_keys.map((each) => `tag:${each.key}`), ...USUAL].slice(0, 6);
  const cents = here.view.extra.digits === "cents";
  return (
    <>
      <Dimensions label={say("Bill by")} by={by} choices={choices} />
      {by !== PARTS && (
        <a className="button" href={here.to(extra(here.view, "parts", parted ? null : "1"))} data-replace="">
          {parted && <Icon name="check" />}
          {say("With products")}
        </a>
      )}
      <a className="button" href={here.to(extra(here.view, "digits", cents ? null : "cents"))} data-replace="">
        {cents && <Icon name="check" />}
        {say("Only cents")}
      </a>
    </>
  );
}

/** What registers call the values of the columns that are cost categories. */
function namesOf(
  columns: readonly string[],
  registers: ReadonlyMap<string, Register>,
): Record<string, Record<string, string>> {
  const named = columns.filter(isCategory).map((by) => {
    const values = Object.entries(registers.get(categoryOf(by).key) ?? {});
    return [by, Object.fromEntries(values.map(([value, { name }]) => [value, name ?? value]))] as const;
  });
  return Object.fromEntries(named);
}
