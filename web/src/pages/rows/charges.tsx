import { useState } from "react";
import type { Query } from "../../api/client";
import { rowsPage } from "../../api/questions";
import type { Row } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { code, label, method, reason } from "../../format/names";
import { Exact } from "../../ui/card";
import type { Column } from "../../ui/virtual";
import { extra } from "../../url/view";
import { LongList } from "./list";
import { Thing } from "./thing";
import { Why } from "./why";

const ORDERS: Record<string, { name: string; query: Query }> = {
  day: { name: "By day", query: [] },
  most: { name: "Most first", query: order("desc") },
  least: { name: "Least first", query: order("asc") },
};

function order(direction: string): Query {
  return [
    ["sort_by", "amount"],
    ["sort_order", direction],
  ];
}

/** Every share of every billing line. */
export function Charges({ query, currency }: { query: Query; currency: string }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const chosen = here.view.extra.sort ?? "day";
  const asked = [...query, ["names", "true"] as const, ...(ORDERS[chosen]?.query ?? [])];
  const [why, setWhy] = useState<Row | null>(null);
  return (
    <>
      <LongList<Row>
        one="row"
        note="one share of one billing line each; press one to see why"
        list={["chargebacks", name, asked]}
        fetch={(page, size, signal) => rowsPage<Row>(name, "chargebacks", asked, page, size, signal)}
        columns={columnsOf(currency)}
        onOpen={(row) => setWhy(row.metadata.explain ? row : null)}
        action={
          <nav className="segments" aria-label="Order">
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
      {why && (
        <Why
          link={String(why.metadata.explain)}
          currency={currency}
          categories={why.categories}
          onClose={() => setWhy(null)}
        />
      )}
    </>
  );
}

function columnsOf(currency: string): Column<Row>[] {
  return [
    { name: "Day", width: "8.5rem", cell: (row) => <span className="num">{full(row.timestamp)}</span> },
    { name: "Who", width: "20%", cell: (row) => <Who row={row} /> },
    {
      name: "For what",
      width: "22%",
      cell: (row) => <Thing {...label("resource_id", row.resource_id, row.resource_name)} />,
    },
    { name: "Product", width: "14%", title: (row) => row.product_type, cell: (row) => code(row.product_type) },
    { name: "How", cell: (row) => <How row={row} /> },
    {
      name: `Amount${currency && `, ${currency}`}`,
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
      <span className="sr">: why this amount?</span>
    </button>
  );
}

function How({ row }: { row: Row }) {
  const asIntended = !row.allocation_detail || row.allocation_detail.endsWith("_ALLOCATION");
  return (
    <>
      <span className={`badge ${row.cost_type}`}>{row.cost_type}</span>{" "}
      <span className="quiet">{asIntended ? method(row.allocation_method) : reason(row.allocation_detail ?? "")}</span>
    </>
  );
}
