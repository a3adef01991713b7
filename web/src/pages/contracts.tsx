import { useAccess } from "../api/me";
import { useOf } from "../api/questions";
import type { Commitment, Contract } from "../api/shapes";
import { useHere } from "../app/router";
import { full, range } from "../format/days";
import { grouped } from "../format/formats";
import { label } from "../format/names";
import { read } from "../money/money";
import { Amount, Card, share } from "../ui/card";
import { Answered } from "../ui/states";
import { Table } from "../ui/table";
import { say } from "../words/say";

/** How much of what was committed to the provider is drawn; nothing without a contract, or for who sees a part. */
export function Contracts() {
  const tenant = useHere().tenant ?? "";
  const { seesAll } = useAccess(tenant);
  const found = useOf(tenant, "/contracts", { query: { page_size: 1000 } }, seesAll);
  return seesAll ? (
    <Answered answer={found} skeleton={null}>
      {({ items }) => items.map((each) => <OfContract key={each.id} contract={each} />)}
    </Answered>
  ) : null;
}

function OfContract({ contract }: { contract: Contract }) {
  const { id, issuer, currency, start_date: start, end_date: end, data_through: through, commitments } = contract;
  const known = through && say("known until {day}", { day: full(through) });
  return (
    <Card
      title={say("Contract with {issuer}", { issuer })}
      note={[id, range(start, end), known].filter(Boolean).join(", ")}
    >
      <Table
        label={say("Table of the contract {id}", { id })}
        heads={[
          say("Committed to"),
          { name: say("Drawn"), end: true },
          { name: say("Of [a committed amount]"), end: true },
          { name: say("Used [of an amount]"), end: true },
          { name: say("Left [of an amount]"), end: true },
          say("It goes on"),
        ]}
      >
        {commitments.map((each) => (
          <Row key={each.id} of={each} currency={currency} />
        ))}
      </Table>
    </Card>
  );
}

function Row({ of, currency }: { of: Commitment; currency: string }) {
  const now = of.intervals.at(-1);
  const size = (text: string) =>
    of.unit === null ? <Amount amount={read(text)} currency={currency} /> : `${short(text)} ${of.unit}`;
  return (
    <tr>
      <th scope="row">
        {of.id} <span className="quiet small">{placesOf(of)}</span>
        {now && <div className="quiet small">{range(now.start_date, now.end_date)}</div>}
      </th>
      {now ? (
        <>
          <td className="end">{size(now.drawn)}</td>
          <td className="end">{size(now.committed)}</td>
          <td className="end num">{share(read(now.drawn), read(now.committed))}</td>
          <td className="end">{size(now.remaining)}</td>
          <td className="wordy">{outlook(of, currency)}</td>
        </>
      ) : (
        <td className="quiet" colSpan={5}>
          {say("it has not begun")}
        </td>
      )}
    </tr>
  );
}

/** When it will be used up, or what will be left. */
function outlook({ intervals, unit }: Commitment, currency: string) {
  const now = intervals.at(-1);
  if (!now) return null;
  const { exhausted_on: days, shortfall, is_over: isOver } = now;
  if (!isOver && days?.p50) {
    const day = full(days.p50);
    if (!days.p10 || !days.p90 || days.p10 === days.p90) return say("used up on {day}", { day });
    return say("used up on {day} ({days})", { day, days: range(days.p10, days.p90) });
  }
  if (shortfall === null) return say("too few days are known to tell");
  const amount =
    unit === null ? <Amount amount={read(shortfall)} currency={currency} /> : `${short(shortfall)} ${unit}`;
  return isOver ? say("{amount} was not drawn", { amount }) : say("about {amount} left at the end", { amount });
}

function placesOf({ applies_to: places }: Commitment): string {
  const conditions = Object.entries(places).map(([column, values]) =>
    values.map((each) => label(column, each, null).name).join(", "),
  );
  return conditions.join("; ");
}

/** A number without zeros at its end: `5,000` of `5000.00`. */
export function short(number: string): string {
  return grouped(number.replace(/\.0+$|(\.\d*?)0+$/, "$1"));
}
