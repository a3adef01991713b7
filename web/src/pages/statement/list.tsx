import { address } from "../../api/address";
import { useAccess } from "../../api/me";
import type { StatementRow, Statements } from "../../api/shapes";
import { useHere } from "../../app/router";
import { addMonths } from "../../calendar/days";
import { month } from "../../format/days";
import { signed } from "../../format/money";
import { amid, dimension } from "../../format/names";
import { read } from "../../money/money";
import { Card, Delta } from "../../ui/card";
import { CsvLink } from "../../ui/csv";
import { Icon } from "../../ui/icons";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
import { StatementsAgainstTheBill } from "../bill/tieout";
import { journalFile, journalOf, statementOf } from "./address";
import { Cents, nameOf } from "./amount";
import { saidOf, verdictsOf } from "./replies";

/** All statements of a month: what each says, how much that changed, and what its recipient replied. */
export function List({ found }: { found: Statements }) {
  const { basis, by, currency, start_date: start } = found;
  const before = { month: month(addMonths(start, -1)) };
  const since =
    basis === "posted" ? say("of own costs, since {month}", before) : say("since {month} [a change]", before);
  const compared = found.items.some((each) => each.delta !== null);
  const heading = { dimension: amid(dimension(by)), currency };
  const note =
    found.status === "CLOSED"
      ? say("by {dimension}, in {currency}, booked", heading)
      : say("by {dimension}, in {currency}, provisional", heading);
  const verdicts = found.scope === null ? `: ${verdictsOf(found.items)}` : "";
  return (
    <Card
      title={say("Statements of {month}", { month: month(start) })}
      note={`${note}${verdicts}`}
      action={<Files found={found} />}
    >
      <Table
        label={say("Statements")}
        heads={[
          dimension(by),
          { name: currency, end: true },
          compared && { name: say("Change [of an amount]"), note: since, end: true },
          say("Reply"),
        ]}
        foot={
          <tr>
            <th scope="row">{say("Total")}</th>
            <td className="end">
              <Cents of={found.total} currency={currency} />
            </td>
            <td colSpan={compared ? 2 : 1} />
          </tr>
        }
      >
        {found.items.map((each) => (
          <Row key={each.number} found={found} row={each} compared={compared} />
        ))}
      </Table>
      {found.tie_out && <StatementsAgainstTheBill tie={found.tie_out} period={start} currency={currency} />}
    </Card>
  );
}

function Row({ found, row, compared }: { found: Statements; row: StatementRow; compared: boolean }) {
  const here = useHere();
  const { by, currency, scope } = found;
  const note = row.last_reply?.is_current ? row.last_reply.note : null;
  return (
    <tr>
      <th scope="row">
        <a className="more" href={here.to(statementOf(here.view, by, row.recipient.value))}>
          {nameOf(by, row.recipient)}
        </a>
        <div className="quiet small">{row.number}</div>
      </th>
      <td className="end">
        <Cents of={row} currency={currency} />
      </td>
      {compared && (
        <td className="end">
          <Changed row={row} currency={currency} />
        </td>
      )}
      <td className={note ? "why" : undefined}>
        <span className={row.verdict === "disputed" ? "bad" : undefined}>{saidOf(row, scope === null)}</span>
        {note && <div className="quiet small">{note}</div>}
      </td>
    </tr>
  );
}

/** How much more the own costs of a month are than those of the month before. */
function Changed({ row: { previous, delta }, currency }: { row: StatementRow; currency: string }) {
  if (previous === null || delta === null) return null;
  const [before, more] = [read(previous), read(delta)];
  return (
    <>
      {signed(more, currency)}{" "}
      <span className="small">
        <Delta amount={before + more} previous={before} currency={currency} />
      </span>
    </>
  );
}

/** All statements as PDF and as CSV, and the journal that finance books; a journal is of the whole bill. */
function Files({ found }: { found: Statements }) {
  const here = useHere();
  const { may, seesAll } = useAccess(found.tenant_name);
  if (!may("export")) return null;
  const { period, by, tenant_name: tenant } = found;
  const asked = { query: { period, by } };
  const journal = journalFile(tenant, period, by);
  return (
    <>
      {seesAll && (
        <>
          <a className="more" href={here.to(journalOf(here.view, by))}>
            {say("Journal")}
          </a>
          <a className="more" href={journal.href} download={journal.name}>
            {say("Journal as CSV")}
          </a>
        </>
      )}
      <a
        className="button"
        href={address(tenant, "/statements.zip", asked)}
        download={`${tenant}-${period}-statements.zip`}
      >
        <Icon name="download" />
        {say("All PDFs")}
      </a>
      <CsvLink
        className="button"
        file={{ href: address(tenant, "/statements.csv", asked), name: `${tenant}-${period}-statements.csv` }}
      />
    </>
  );
}
