import { useRegisters } from "../../api/categories";
import type { CategoryPart } from "../../api/shapes";
import { useHere } from "../../app/router";
import { dimension, label } from "../../format/names";
import { Exact } from "../../ui/card";
import { Table } from "../../ui/table";
import { toggle } from "../../url/view";

export type Parts = Readonly<Record<string, readonly CategoryPart[]>>;

/** Whose the amount of a row is by each cost category, and which part of it. */
export function PartsOf({ categories, currency }: { categories: Parts; currency: string }) {
  const here = useHere();
  const keys = Object.keys(categories).sort();
  const registers = useRegisters(
    here.tenant ?? "",
    keys.map((key) => `category:${key}`),
  );
  if (keys.length === 0) return null;
  return (
    <section>
      <h3>Whose it is</h3>
      <Table
        label="Values by cost category"
        heads={["Category", "Value", { name: "Part", end: true }, { name: "Amount", end: true }]}
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
                <td className="end num">{part.category_share}</td>
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
