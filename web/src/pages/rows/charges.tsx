import type { Query } from "../../api/address";
import { get } from "../../api/client";
import type { Row } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { code, label, method, reason } from "../../format/names";
import { Exact } from "../../ui/card";
import type { Column } from "../../ui/virtual";
import { extra } from "../../url/view";
import { say } from "../../words/say";
import { LongList, type RowsAsked } from "./list";
import { Thing } from "./thing";
import { useExplain } from "./why";

const ORDERS: Record<string, { name: string; query: Query<"/chargebacks"> }> = {
  day: { name: say("By day"), query: {} },
  most: { name: say("Most first"), query: { sort_by: "amount", sort_order: "desc" } },
  least: { name: say("Least first"), query: { sort_by: "amount", sort_order: "asc" } },
};

/** Every share of every billing line. */
export function Charges({ asked, currency }: { asked: RowsAsked; currency: string }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const chosen = here.view.extra.sort ?? "day";
  const query = { ...asked.query, names: true, ...ORDERS[chosen]?.query };
  return (
    <LongList<Row>
      of="rows"
      note={say("one share of one billing line each; press one to see why")}
      list={["/chargebacks", name, query, asked.filters]}
      fetch={(page, page_size, signal) =>
        get(name, "/chargebacks", { ...asked, query: { ...query, page, page_size } }, signal)
      }
      columns={columnsOf(currency)}
      onOpen={useExplain()}
      action={
        <nav className="segments" aria-label={say("Order")}>
          {Object.entries(ORDERS).map(([key, each]) => (
            <a
              key={key}
              href={here.to(extra(here.view, "sort", key === "day" ? null : key))}
              data-replace=""
              aria-current={chosen === key ? "true" : undefined}
            >
              {each.name}
            </a>
          ))}
        </nav>
      }
    />
  );
}

function columnsOf(currency: string): Column<Row>[] {
  return [
    { name: say("Day"), width: "8.5rem", cell: (row) => <span className="num">{full(row.timestamp)}</span> },
    { name: say("Who"), width: "20%", cell: (row) => <Who row={row} /> },
    {
      name: say("For what"),
      width: "22%",
      cell: (row) => <Thing {...label("resource_id", row.resource_id, row.resource_name)} />,
    },
    { name: say("Product"), width: "14%", title: (row) => row.product_type, cell: (row) => code(row.product_type) },
    { name: say("How"), cell: (row) => <How row={row} /> },
    {
      name: currency ? say("Amount, {currency}", { currency }) : say("Amount"),
      width: "13rem",
      end: true,
      cell: (row) => <Exact amount={row.amount} currency={currency} />,
    },
  ];
}

/** The button of the row: its key and its name for readers; a click anywhere in the row does the same. */
function Who({ row }: { row: Row }) {
  const who = label("identity_id", row.identity_id, row.identity_name);
  return (
    <button type="button" className="pair">
      <b className="cut">{who.name}</b>
      <span className="quiet small cut">{who.id ?? ""}</span>
      <span className="sr">{say(": why this amount?")}</span>
    </button>
  );
}

function How({ row }: { row: Row }) {
  const asIntended = !row.allocation_detail || row.allocation_detail.endsWith("_ALLOCATION");
  return (
    <>
      <span className={`badge ${row.cost_type}`}>{row.cost_type === "usage" ? say("usage") : say("shared")}</span>{" "}
      <span className="quiet">{asIntended ? method(row.allocation_method) : reason(row.allocation_detail ?? "")}</span>
    </>
  );
}
