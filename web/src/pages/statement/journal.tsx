import { useOf } from "../../api/questions";
import type { Journal } from "../../api/shapes";
import { useHere } from "../../app/router";
import { month } from "../../format/days";
import { dimension } from "../../format/names";
import { read } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { CsvLink } from "../../ui/csv";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
import { journalFile, statementOf, statements } from "./address";
import { nameOf } from "./amount";

/** The names of finance's own ids that lines of a journal have: each is a column. */
export function ledgerIds(lines: Journal["lines"]): string[] {
  return [...new Set(lines.flatMap((each) => Object.keys(each.gl)))].sort();
}

/** The journal of a month as a table: a line for each debit and each credit. */
export function JournalView({ tenant, period, by }: { tenant: string; period: string; by: string }) {
  const found = useOf(tenant, "/periods/{period}/journal", { at: { period }, query: { by } });
  return (
    <Answered answer={found} skeleton={<Bone height={30} />}>
      {(journal) => <Lines tenant={tenant} journal={journal} />}
    </Answered>
  );
}

function Lines({ tenant, journal }: { tenant: string; journal: Journal }) {
  const here = useHere();
  const { by, currency, lines, number, period } = journal;
  const ids = ledgerIds(lines);
  const corrects = lines.some((each) => each.charge_period);
  return (
    <Card
      title={say("Journal of {month}", { month: month(journal.start_date) })}
      note={
        journal.status === "CLOSED" ? say("{number}, booked", { number }) : say("{number}, provisional", { number })
      }
      action={
        <>
          <a className="more" href={here.to(statements(here.view, by))}>
            {say("Statements")}
          </a>
          <CsvLink className="button" file={journalFile(tenant, period, by)} />
        </>
      }
    >
      <Table
        label={say("Table of the journal")}
        heads={[
          say("Line"),
          say("Account"),
          dimension(by),
          ...ids.map((id) => say("GL {name}", { name: id.replaceAll("_", " ") })),
          corrects && say("Month"),
          { name: say("Debit"), end: true },
          { name: say("Credit [not debit]"), end: true },
          say("Text"),
        ]}
        foot={
          <tr>
            <th scope="row" colSpan={3 + ids.length + Number(corrects)}>
              {say("Total in {currency}", { currency })}
            </th>
            <td className="end">
              <Amount amount={journal.debit} currency={currency} />
            </td>
            <td className="end">
              <Amount amount={journal.credit} currency={currency} />
            </td>
            <td />
          </tr>
        }
      >
        {lines.map((each) => (
          <tr key={each.line}>
            <th scope="row">{each.line}</th>
            <td>{each.account}</td>
            <td>
              {each.value !== null && (
                <a className="more" href={here.to(statementOf(here.view, by, each.value))}>
                  {nameOf(by, { value: each.value, name: each.name })}
                </a>
              )}
            </td>
            {ids.map((id) => (
              <td key={id}>{each.gl[id]}</td>
            ))}
            {corrects && <td>{each.charge_period && month(`${each.charge_period}-01`)}</td>}
            <Side amount={each.debit} currency={currency} />
            <Side amount={each.credit} currency={currency} />
            <td className="why quiet small">{each.text}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** A line is a debit or a credit: the other side is left empty. */
function Side({ amount, currency }: { amount: string; currency: string }) {
  return <td className="end">{read(amount) !== 0n && <Amount amount={amount} currency={currency} />}</td>;
}
