import { sumsOf as askedSums, useOf } from "../../api/questions";
import { useHere } from "../../app/router";
import type { Day } from "../../calendar/days";
import { inTime } from "../../format/days";
import { read, type Units } from "../../money/money";
import { Amount, Card, share } from "../../ui/card";
import { sumsFile } from "../../ui/csv";
import { Answered, BoneTable } from "../../ui/states";
import { Table } from "../../ui/table";
import { toggle } from "../../url/view";
import { say } from "../../words/say";
import { type CategoryDocument, hasDatedParents, lastDay, nameIn, parentOn, treeOf, type ValueRow } from "./document";

/** The values with what is below them, and what each of them has in the period. */
export function ValuesCard({ categoryKey, document }: { categoryKey: string; document: CategoryDocument }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const by = `category:${categoryKey}`;
  const unit = hasDatedParents(document) ? "day" : "month";
  const query = useOf(name, "/chargebacks/aggregate", askedSums(here.view, [by], unit));
  return (
    <Card
      title={say("Values")}
      note={say("own: by the rules; then what values hand on")}
      file={sumsFile(name, here.view, [by], { values: Object.keys(document.values ?? {}).length + 1, days: 30 })}
    >
      <Answered answer={query} skeleton={<BoneTable rows={Object.keys(document.values ?? {}).length + 3} />}>
        {(found) => (
          <ValuesTable
            rows={treeOf(document, found.buckets, by)}
            day={lastDay(found.buckets)}
            whole={read(found.total_amount)}
            by={by}
            document={document}
            currency={found.currency}
          />
        )}
      </Answered>
    </Card>
  );
}

interface Props {
  rows: readonly ValueRow[];
  /** What values belong to is that of this day. */
  day: Day;
  whole: Units;
  by: string;
  document: CategoryDocument;
  currency: string;
}

function ValuesTable({ rows, day, whole, by, document, currency }: Props) {
  const here = useHere();
  const hands = rows.some((each) => each.sums?.given || each.sums?.received);
  const parents = rows.some((each) => each.isParent);
  const amount = (units: Units | undefined) =>
    units === undefined ? <span className="quiet">–</span> : <Amount amount={units} currency={currency} />;
  if (rows.length === 0) return <p className="note">{say("There are no values and no costs in this view.")}</p>;
  return (
    <Table
      className="tall"
      label={say("Table of values")}
      heads={[
        say("Value"),
        { name: say("Own"), end: true },
        hands && { name: say("Handed in"), end: true },
        hands && { name: say("Handed out"), end: true },
        { name: say("Total"), end: true },
        parents && { name: say("With those below"), end: true },
        { name: say("Share [of a whole]"), end: true },
      ]}
      foot={
        <tr>
          <th scope="row">{say("All")}</th>
          <td />
          {hands && <td />}
          {hands && <td />}
          <td className="end">{amount(whole)}</td>
          {parents && <td />}
          <td />
        </tr>
      }
    >
      {rows.map((row) => (
        <tr key={row.value}>
          <th scope="row" style={{ paddingInlineStart: `${0.75 + row.depth * 1.25}rem` }}>
            <a
              className="more"
              href={here.to(toggle({ ...here.view, extra: {} }, by, row.value), "costs")}
              title={row.value}
            >
              {nameIn(document, row.value)}
            </a>
            {row.name !== row.value && <span className="quiet small"> {row.value}</span>}
            <span className="quiet small">{inTime(document.values?.[row.value] ?? {})}</span>
            {row.depth > 0 && (
              <span className="sr">
                {say(", below {parent}", {
                  parent: nameIn(document, parentOn(document.values?.[row.value], day) ?? ""),
                })}
              </span>
            )}
          </th>
          <td className="end">{amount(row.sums?.direct)}</td>
          {hands && <td className="end">{amount(row.sums?.received)}</td>}
          {hands && <td className="end">{amount(row.sums?.given)}</td>}
          <td className="end">{amount(row.sums?.total)}</td>
          {parents && <td className="end">{row.isParent ? amount(row.below) : null}</td>}
          <td className="end num">{share(row.below, whole)}</td>
        </tr>
      ))}
    </Table>
  );
}
