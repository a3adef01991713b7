import { present } from "../../api/answer";
import { useCategories, useRegisters } from "../../api/categories";
import { useOf } from "../../api/questions";
import type { Explained, Row, TopicRow } from "../../api/shapes";
import { useHere } from "../../app/router";
import { grouped } from "../../format/formats";
import { dimension, label } from "../../format/names";
import { Exact } from "../../ui/card";
import { Table } from "../../ui/table";
import { toggle } from "../../url/view";
import { say } from "../../words/say";

interface Props {
  list: "/chargebacks" | "/topic-attributions";
  asked: string;
  found: Explained;
  currency: string;
}

/** Whose an explained amount is by each cost category, and which part of it: its row of the list says so. */
export function PartsOf({ list, asked, found, currency }: Props) {
  const here = useHere();
  const tenant = here.tenant ?? "";
  const has = present(useCategories(tenant))?.items.length;
  const who = "topic_name" in found ? ["topic_name", found.topic_name] : ["identity_id", found.identity_id];
  const filters = [["line_id", found.line_id], who].map(([key = "", value = ""]) => ({ key, value, not: false }));
  const as_of = new URLSearchParams(asked).get("as_of");
  const query = { start_date: found.date, end_date: found.date, ...(as_of && { as_of }) };
  const rows = present(useOf(tenant, list, { query, filters }, Boolean(has) && found.row !== null))?.items;
  const linked = (row: Row | TopicRow) => String(row.metadata.explain ?? "").split("?")[1] ?? "";
  const wanted = new URLSearchParams(asked).toString();
  const row = rows?.find((each) => new URLSearchParams(linked(each)).toString() === wanted);
  return row?.categories ? <Parts categories={row.categories} currency={currency} /> : null;
}

function Parts({ categories, currency }: { categories: NonNullable<Row["categories"]>; currency: string }) {
  const here = useHere();
  const keys = Object.keys(categories).sort();
  const registers = useRegisters(
    here.tenant ?? "",
    keys.map((key) => `category:${key}`),
  );
  if (keys.length === 0) return null;
  return (
    <section>
      <h3>{say("Whose it is")}</h3>
      <Table
        label={say("Values by cost category")}
        heads={[say("Category"), say("Value"), { name: say("Part"), end: true }, { name: say("Amount"), end: true }]}
      >
        {keys.flatMap((key) =>
          categories[key]?.map((part) => {
            const by = `category:${key}`;
            const { name } = label(by, part.value, registers.get(key)?.[part.value]?.name);
            return (
              <tr key={`${key} ${part.value}`}>
                <th scope="row">{dimension(by)}</th>
                <td>
                  <a
                    className="more"
                    href={here.to(toggle({ ...here.view, filters: [], extra: {} }, by, part.value), "costs")}
                  >
                    {name}
                  </a>
                </td>
                <td className="end num">{grouped(part.category_share)}</td>
                <td className="end">
                  <Exact amount={part.amount} currency={currency} />
                </td>
              </tr>
            );
          }),
        )}
      </Table>
    </section>
  );
}
