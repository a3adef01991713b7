import { tenantPath, useTenant } from "../../api/questions";
import { useHere } from "../../app/router";
import { Chip, LeftAside } from "../../ui/filters";
import { Toolbar } from "../../ui/toolbar";
import { apiQuery, extra, type Filter, type View } from "../../url/view";
import { Charges } from "./charges";
import { Lines } from "./lines";

/** The columns that a bill line has before it is split. */
const OF_LINES = ["product_type", "product_category", "resource_id", "environment_id"];

function isOfLines({ key }: Filter): boolean {
  return OF_LINES.includes(key) || key.startsWith("tag:");
}

/** Every share of every billing line, or the lines themselves, to the last digit. */
export function RowsPage() {
  const here = useHere();
  const { view } = here;
  const name = here.tenant ?? "";
  const currency = useTenant(name).data?.currency ?? "";
  const lines = view.extra.tab === "lines";
  const [kept, ignored] = lines ? parted(view) : [view, []];
  const line = view.extra.line_id;
  const query = [...apiQuery(kept, { compare: false }), ...(line ? [["line_id", line] as const] : [])];
  const what = lines ? "billing" : "chargebacks";
  const file = { path: tenantPath(name, `${what}.csv`), query, name: `${name}-${lines ? "bill-lines" : "rows"}.csv` };
  return (
    <>
      <Toolbar compare={false} file={file}>
        {line && <Chip what="Bill line is" name={line} without={here.to(extra(view, "line_id", null))} />}
      </Toolbar>
      <nav className="segments tabs" aria-label="Kind of rows">
        <a href={here.to(extra(view, "tab", null))} aria-current={lines ? undefined : "page"}>
          Charges
        </a>
        <a href={here.to(extra(extra(view, "sort", null), "tab", "lines"))} aria-current={lines ? "page" : undefined}>
          Bill lines
        </a>
      </nav>
      <LeftAside subject="Bill lines" keys={ignored} />
      {lines ? <Lines query={query} currency={currency} /> : <Charges query={query} currency={currency} />}
    </>
  );
}

/** A view with the filters that bill lines have, and the keys of the others. */
function parted(view: View): [View, string[]] {
  return [
    { ...view, filters: view.filters.filter(isOfLines) },
    view.filters.filter((each) => !isOfLines(each)).map((each) => each.key),
  ];
}
