import { address } from "../../api/address";
import { useUnassigned } from "../../api/categories";
import { useAccess } from "../../api/me";
import { statementOf } from "../../api/questions";
import type { Statement, StatementRanking } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full, instant, month } from "../../format/days";
import { formats, grouped } from "../../format/formats";
import { money, signed } from "../../format/money";
import { code, dimension } from "../../format/names";
import { read } from "../../money/money";
import { Card, Exact } from "../../ui/card";
import { CsvLink } from "../../ui/csv";
import { Fact } from "../../ui/fact";
import { Icon } from "../../ui/icons";
import { Table } from "../../ui/table";
import { during, readView } from "../../url/view";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { Budgeted, useBudgets } from "../bill/budgets";
import { StatementsAgainstTheBill } from "../bill/tieout";
import { keyOf } from "../costs/facts";
import { ADJUSTMENTS, called } from "../monthend/kinds";
import { filtersOf, statements } from "./address";
import { Cents, nameOf } from "./amount";
import { Replies } from "./replies";

const KINDS: Record<Statement["lines"][number]["kind"], string> = {
  direct: say("Direct"),
  shared_in: say("Reallocated from others"),
  shared_out: say("Reallocated to others"),
};

const UNITS: Record<Statement["unit_costs"][number]["per"], string> = {
  gib_in: say("For each GiB written"),
  gib_out: say("For each GiB read"),
};

/** One statement: what it says as a page and as PDF, and where these are. */
export function StatementView({ found }: { found: Statement }) {
  const here = useHere();
  return (
    <>
      <Head found={found} />
      <Card title={say("What it is made of")}>
        <Lines found={found} />
        {found.tie_out && (
          <StatementsAgainstTheBill tie={found.tie_out} period={found.start_date} currency={found.currency} />
        )}
      </Card>
      <Replies found={found} />
      <div className="cards">
        {found.identities && (
          <Largest
            title={say("Largest identities")}
            label={say("Identities")}
            of={found.identities}
            currency={found.currency}
          />
        )}
        <Largest
          title={say("Largest resources")}
          label={say("Resources")}
          of={found.resources}
          currency={found.currency}
        />
        {found.bills && (
          <Largest title={say("Largest bills")} label={say("Bills")} of={found.bills} currency={found.currency} />
        )}
        {found.topics && found.topics.items.length > 0 && (
          <Largest title={say("Largest topics")} label={say("Topics")} of={found.topics} currency={found.currency} />
        )}
        {found.unit_costs.length > 0 && <UnitCosts of={found.unit_costs} currency={found.currency} />}
      </div>
      <p className="note">
        <a className="more" href={here.to(statements(here.view, found.by))}>
          {say("All statements of {month}", { month: month(found.start_date) })}
        </a>
      </p>
    </>
  );
}

function Head({ found }: { found: Statement }) {
  const { recipient, previous, currency } = found;
  const tenant = useHere().tenant ?? "";
  const budget = useBudgets(tenant, found.by, found.start_date.slice(0, 7)).get(keyOf(recipient.value));
  const above = recipient.path.slice(1).map((each) => each.name ?? each.value);
  return (
    <Card
      className="statement"
      title={nameOf(found.by, recipient)}
      note={[dimension(found.by), ...above].join(" · ")}
      action={<Files found={found} />}
    >
      <p className="statement-total">
        <Cents of={found} currency={currency} />
        {previous && (
          <span className="note" title={reworded(previous.sentence)}>
            {changeOf(found, previous)}
          </span>
        )}
      </p>
      {previous && <p className="note">{reworded(previous.sentence)}</p>}
      <dl className="facts-list">
        <Fact name={say("Number")}>{found.number}</Fact>
        <Fact name={say("Status")}>{statusOf(found)}</Fact>
        <Fact name={say("Data through")}>
          {say("{day}, {n} of {all} days", {
            day: found.data_through ? full(found.data_through) : say("no day yet"),
            n: found.calculated_days,
            all: found.days,
          })}
        </Fact>
        {found.issued_at && <Fact name={say("Issued")}>{instant(found.issued_at)}</Fact>}
        {found.supersedes && <Fact name={say("Supersedes")}>{found.supersedes}</Fact>}
        {found.issuer && <Fact name={say("Issued by")}>{found.issuer}</Fact>}
        {found.invoices && found.invoices.length > 0 && (
          <Fact name={say("Invoices of the provider")}>{found.invoices.join(", ")}</Fact>
        )}
        {budget && (
          <Fact name={say("Budget")}>
            <Budgeted total={read(found.amount)} budget={budget} />
          </Fact>
        )}
        {Object.entries(recipient.gl).map(([name, id]) => (
          <Fact key={name} name={dimension(name)}>
            {id}
          </Fact>
        ))}
        {recipient.contacts.length > 0 && <Fact name={say("Contact")}>{recipient.contacts.join(", ")}</Fact>}
      </dl>
    </Card>
  );
}

/** What changed since the month before: of its own costs, where it has more than these. */
function changeOf(found: Statement, { delta, period }: NonNullable<Statement["previous"]>): string {
  const values = { change: signed(read(delta), found.currency), month: month(`${period}-01`) };
  return found.corrections?.length || found.adjustments?.length
    ? say("{change} of own costs since {month}", values)
    : say("{change} since {month}", values);
}

function statusOf({ status, closed_at }: Statement): string {
  if (status === "PROVISIONAL") return say("Provisional: the month is not closed");
  return closed_at ? say("Booked: the month was closed {time}", { time: instant(closed_at) }) : say("Booked");
}

/** The statement as a page, as CSV and as PDF: plain addresses, to send to a colleague. */
function Files({ found }: { found: Statement }) {
  const { may } = useAccess(found.tenant_name);
  const one = statementOf(found.period, found.by, found.recipient.value);
  const file = (form: "html" | "pdf" | "csv") => address(found.tenant_name, `/statement.${form}`, one);
  return (
    <>
      <a className="button" href={file("html")} target="_blank" rel="noreferrer">
        <Icon name="print" />
        {say("Page")}
      </a>
      {may("export") && (
        <>
          <a className="button" href={file("pdf")} target="_blank" rel="noreferrer">
            <Icon name="download" />
            {say("PDF")}
          </a>
          <CsvLink className="button" file={{ href: file("csv"), name: `${found.number}.csv` }} />
        </>
      )}
    </>
  );
}

/** What adds up to the statement; its lines lead to their costs and to their rows. */
function Lines({ found }: { found: Statement }) {
  const here = useHere();
  const { by, corrections, adjustments, currency, start_date: start, end_date: end } = found;
  const filters = filtersOf(by, found.recipient.value, useUnassigned(found.tenant_name, by));
  const own = filters && { ...during(readView(""), start, end), filters };
  return (
    <>
      <Table
        label={say("Lines [of a statement]")}
        heads={[say("What"), say("How"), { name: currency, end: true }]}
        foot={
          <tr>
            <th scope="row" colSpan={2}>
              {say("Total")}
            </th>
            <td className="end">
              <Cents of={found} currency={currency} />
            </td>
          </tr>
        }
      >
        {found.lines.map((line) => {
          const { product_type: value } = line;
          const view = own && { ...own, filters: [...own.filters, { key: "product_type", value, not: false }] };
          return (
            <tr key={`${line.kind} ${line.product_category} ${value}`}>
              <th scope="row" title={value}>
                {view ? (
                  <a className="more" href={here.to(view, "item")}>
                    {code(value)}
                  </a>
                ) : (
                  code(value)
                )}
              </th>
              <td className="quiet small">
                {KINDS[line.kind]}
                {view && (
                  <>
                    {" · "}
                    <a href={here.to(view, "rows")}>
                      {say("Rows")}
                      <span className="sr">{say(" of {name}", { name: code(value) })}</span>
                    </a>
                  </>
                )}
              </td>
              <td className="end">
                <Cents of={line} currency={currency} />
              </td>
            </tr>
          );
        })}
        {corrections?.map((each) => (
          <tr key={`correction ${each.period_id}`}>
            <th scope="row">{say("Correction of {month}", { month: month(each.start_date) })}</th>
            <td className="quiet small why">{reworded(each.sentence)}</td>
            <td className="end">
              <Cents of={each} currency={currency} />
            </td>
          </tr>
        ))}
        {adjustments?.map((each) => (
          <tr key={`adjustment ${each.id} ${each.amount}`}>
            <th scope="row">{adjustmentOf(each)}</th>
            <td className="quiet small why">
              {[each.reason, each.reference, otherOf(each)].filter(Boolean).join(", ")}
            </td>
            <td className="end">
              <Cents of={each} currency={currency} />
            </td>
          </tr>
        ))}
      </Table>
      {found.status === "CLOSED" && (
        <p className="note">
          {say(
            "The lines lead to costs as they are known now: what was learned since the month was closed is booked in a later one.",
          )}
        </p>
      )}
    </>
  );
}

type Adjusted = NonNullable<Statement["adjustments"]>[number];

function adjustmentOf({ kind, applies_to }: Adjusted): string {
  const name = called(ADJUSTMENTS, kind);
  if (!applies_to) return say("Adjustment: {kind}", { kind: name });
  return say("Adjustment: {kind} of {month}", { kind: name, month: month(`${applies_to}-01`) });
}

/** Who got an amount, or gave it. */
function otherOf({ amount, other: name }: Adjusted): string | null {
  if (!name) return null;
  return read(amount) < 0n ? say("to {name} [who gets it]", { name }) : say("from {name} [who gives it]", { name });
}

/** What a unit cost, by each kind of usage: alternatives, which divide the same costs, so that nothing adds up. */
function UnitCosts({ of, currency }: { of: Statement["unit_costs"]; currency: string }) {
  const note = of.length > 1 ? say("each divides the same costs: alternatives, never to be added") : "";
  return (
    <Card title={say("Costs per unit")} note={note}>
      <dl className="facts-list">
        {of.map((each) => (
          <Fact key={each.per} name={UNITS[each.per]}>
            {formats.currency === "before" && `${currency} `}
            <Exact amount={each.unit_cost} currency={currency} />
            {formats.currency === "after" && ` ${currency}`}
            <span className="quiet small">
              {" "}
              {say("= {amount} ÷ {usage} {unit}, of the days on which it was measured", {
                amount: money(each.amount, currency),
                usage: grouped(each.usage),
                unit: each.unit,
              })}
            </span>
          </Fact>
        ))}
      </dl>
    </Card>
  );
}

interface LargestProps {
  title: string;
  /** What its table is called. */
  label: string;
  of: StatementRanking;
  currency: string;
}

function Largest({ title, label, of, currency }: LargestProps) {
  return (
    <Card title={title}>
      <Table label={label} heads={[say("Name"), { name: currency, end: true }]}>
        {of.items.map((each) => (
          <tr key={`${each.within ?? ""} ${each.id}`}>
            <th scope="row">
              {each.name ?? each.id}
              {(each.within ?? (each.name && each.id)) && (
                <span className="quiet small"> {each.within ?? each.id}</span>
              )}
            </th>
            <td className="end">
              <Cents of={each} currency={currency} />
            </td>
          </tr>
        ))}
        {of.other && (
          <tr>
            <th scope="row">{say("{n} {n|other|others}", { n: of.other.count })}</th>
            <td className="end">
              <Cents of={of.other} currency={currency} />
            </td>
          </tr>
        )}
      </Table>
    </Card>
  );
}
