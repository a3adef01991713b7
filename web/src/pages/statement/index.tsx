import { address } from "../../api/client";
import { useAccess } from "../../api/me";
import { useStatement, useStatements, useTenant } from "../../api/questions";
import type { Statements, Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { firstOfMonth, month } from "../../format/days";
import { dimension } from "../../format/names";
import { Card } from "../../ui/card";
import { CsvLink } from "../../ui/csv";
import { Answered, Bone, Empty } from "../../ui/states";
import { Table } from "../../ui/table";
import { Toolbar } from "../../ui/toolbar";
import { billed, wholeMonths } from "../../url/period";
import { StatementsAgainstTheBill } from "../bill/tieout";
import { leadingTag } from "../costs/facts";
import { isStated, statementOf, VALUE } from "./address";
import { Cents, nameOf } from "./amount";
import { StatementView } from "./document";

/** The statements of a month: all of them, or the one of a value. */
export function StatementPage() {
  const { tenant: name } = useHere();
  const tenant = useTenant(name ?? "");
  return (
    <Answered answer={tenant} skeleton={<Bone height={30} />}>
      {(found) =>
        found.last_date ? (
          <OfMonth tenant={found} last={found.last_date} />
        ) : (
          <Empty title="There are no statements yet">
            <p>They appear when the first day is calculated.</p>
          </Empty>
        )
      }
    </Answered>
  );
}

function OfMonth({ tenant, last }: { tenant: Tenant; last: string }) {
  const { view } = useHere();
  const { end } = billed(view, tenant.first_date, last);
  const period = firstOfMonth(end).slice(0, 7);
  const asked = view.by ?? leadingTag(tenant) ?? "identity_id";
  const by = isStated(asked) ? asked : "identity_id";
  const value = view.extra[VALUE];
  const shown = wholeMonths({ start: end, end });
  return (
    <>
      <Toolbar shown={shown} usual="The last whole month" compare={false} filters={false} />
      {value === undefined ? (
        <List tenant={tenant.tenant_name} period={period} by={by} />
      ) : (
        <One tenant={tenant.tenant_name} period={period} by={by} value={value} />
      )}
    </>
  );
}

function One({ tenant, period, by, value }: { tenant: string; period: string; by: string; value: string }) {
  const query = useStatement(tenant, period, by, value);
  return (
    <Answered answer={query} skeleton={<Bone height={40} />}>
      {(found) => <StatementView found={found} />}
    </Answered>
  );
}

function List({ tenant, period, by }: { tenant: string; period: string; by: string }) {
  const query = useStatements(tenant, period, by);
  return (
    <Answered answer={query} skeleton={<Bone height={30} />}>
      {(found) =>
        found.items.length === 0 ? (
          <Empty title={`No costs in ${month(found.start_date)}`}>
            <p>Choose another month.</p>
          </Empty>
        ) : (
          <Listed found={found} />
        )
      }
    </Answered>
  );
}

/** All statements as CSV, and the journal that finance books; a journal is of the whole bill. */
function Files({ found }: { found: Statements }) {
  const { may, seesAll } = useAccess(found.tenant_name);
  if (!may("export")) return null;
  const { period, by, tenant_name: tenant } = found;
  const journal = address(tenant, "/periods/{period}/journal", { at: { period }, query: { by, format: "csv" } });
  return (
    <>
      {seesAll && (
        <a className="more" href={journal} download={`${tenant}-${period}-journal.csv`}>
          Journal as CSV
        </a>
      )}
      <CsvLink
        className="button"
        file={{
          href: address(tenant, "/statements.csv", { query: { period, by } }),
          name: `${tenant}-${period}-statements.csv`,
        }}
      />
    </>
  );
}

function Listed({ found }: { found: Statements }) {
  const here = useHere();
  return (
    <Card
      title={`Statements of ${month(found.start_date)}`}
      note={`by ${dimension(found.by).toLowerCase()}, in ${found.currency}, ${found.status.toLowerCase()}`}
      action={<Files found={found} />}
    >
      <Table
        label="Statements"
        heads={[dimension(found.by), "Number", { name: found.currency, end: true }]}
        foot={
          <tr>
            <th scope="row" colSpan={2}>
              Total
            </th>
            <td className="end">
              <Cents of={found.total} currency={found.currency} />
            </td>
          </tr>
        }
      >
        {found.items.map((each) => (
          <tr key={each.number}>
            <th scope="row">
              <a className="more" href={here.to(statementOf(here.view, found.by, each.recipient.value))}>
                {nameOf(found.by, each.recipient)}
              </a>
            </th>
            <td className="quiet small">
              {each.number}
              {each.verdict && `, ${each.verdict}`}
            </td>
            <td className="end">
              <Cents of={each} currency={found.currency} />
            </td>
          </tr>
        ))}
      </Table>
      {found.tie_out && (
        <StatementsAgainstTheBill tie={found.tie_out} period={found.start_date} currency={found.currency} />
      )}
    </Card>
  );
}
