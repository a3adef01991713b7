import { get } from "../../api/client";
import type { TopicRow } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { attribution, code } from "../../format/names";
import { Exact } from "../../ui/card";
import type { Column } from "../../ui/virtual";
import { say } from "../../words/say";
import { LongList, type RowsAsked } from "./list";
import { useExplain } from "./why";

/** Every part of a line of a cluster that one of its topics has. */
export function TopicRows({ asked, currency }: { asked: RowsAsked; currency: string }) {
  const name = useHere().tenant ?? "";
  return (
    <LongList<TopicRow>
      of="rows"
      note={say("one topic's part of one billing line each; press one to see why")}
      list={["/topic-attributions", name, asked.query, asked.filters]}
      fetch={(page, page_size, signal) =>
        get(name, "/topic-attributions", { ...asked, query: { ...asked.query, page, page_size } }, signal)
      }
      columns={columnsOf(currency)}
      onOpen={useExplain()}
    />
  );
}

function columnsOf(currency: string): Column<TopicRow>[] {
  return [
    { name: say("Day"), width: "8.5rem", cell: (row) => <span className="num">{full(row.timestamp)}</span> },
    {
      name: say("Topic"),
      width: "28%",
      cell: (row) => (
        <button type="button" className="pair">
          <b className="cut">{row.topic_name}</b>
          <span className="sr">{say(": why this amount?")}</span>
        </button>
      ),
    },
    { name: say("Cluster"), width: "12%", cell: (row) => <span className="cut">{row.cluster_resource_id}</span> },
    { name: say("Product"), title: (row) => row.product_type, cell: (row) => code(row.product_type) },
    { name: say("How"), cell: (row) => <span className="quiet">{attribution(row.attribution_method)}</span> },
    {
      name: currency ? say("Amount, {currency}", { currency }) : say("Amount"),
      width: "13rem",
      end: true,
      cell: (row) => <Exact amount={row.amount} currency={currency} />,
    },
  ];
}
