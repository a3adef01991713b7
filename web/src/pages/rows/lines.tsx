import { get } from "../../api/client";
import type { BillLine } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { grouped } from "../../format/formats";
import { code, label } from "../../format/names";
import { Exact } from "../../ui/card";
import type { Column } from "../../ui/virtual";
import { toggle } from "../../url/view";
import { say } from "../../words/say";
import { LongList, type RowsAsked } from "./list";
import { Thing } from "./thing";

/** The lines of the bill as the provider sent them. */
export function Lines({ asked, currency }: { asked: RowsAsked; currency: string }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const shares = (line: BillLine) => {
    const others = { ...here.view, filters: here.view.filters.filter((each) => each.key !== "line_id"), extra: {} };
    return here.to(toggle(others, "line_id", String(line.metadata.line_id ?? "")));
  };
  return (
    <LongList<BillLine>
      of="lines"
      note={say("as the provider billed it; press one to see who shares it")}
      list={["/billing", name, asked.query, asked.filters]}
      fetch={(page, page_size, signal) =>
        get(name, "/billing", { ...asked, query: { ...asked.query, page, page_size } }, signal)
      }
      columns={columnsOf(currency, shares)}
    />
  );
}

function columnsOf(currency: string, shares: (line: BillLine) => string): Column<BillLine>[] {
  return [
    { name: say("Day"), width: "8.5rem", cell: (line) => <span className="num">{full(line.timestamp)}</span> },
    {
      name: say("For what"),
      width: "26%",
      cell: (line) => {
        const resource = line.metadata.resource_name;
        const { name, id } = label("resource_id", line.resource_id, resource == null ? null : String(resource));
        return <Thing name={name} id={id} href={shares(line)} />;
      },
    },
    { name: say("Product"), title: (line) => line.product_type, cell: (line) => code(line.product_type) },
    {
      name: say("Quantity"),
      width: "16rem",
      end: true,
      cell: (line) => <Measure number={line.quantity} unit={String(line.metadata.unit ?? "")} />,
    },
    { name: say("Unit price"), width: "9rem", end: true, cell: (line) => <Measure number={line.unit_price} unit="" /> },
    {
      name: currency ? say("Cost, {currency}", { currency }) : say("Cost"),
      width: "13rem",
      end: true,
      cell: (line) => <Exact amount={line.total_cost} currency={line.currency} />,
    },
  ];
}

function Measure({ number, unit }: { number: string | null; unit: string }) {
  if (number === null) return <span className="quiet">–</span>;
  return (
    <span className="num">
      {grouped(number)} <span className="quiet small">{unit}</span>
    </span>
  );
}
