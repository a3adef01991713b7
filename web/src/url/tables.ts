import { extra, type View } from "./view";

/** The page's main chart; the key `t` is for it. */
export const MAIN = "1";

function named(view: View): string[] {
  return (view.extra.table ?? "").split(".").filter(Boolean);
}

/** Whether a chart is shown as a table. */
export function isTable(view: View, chart: string): boolean {
  return named(view).includes(chart);
}

/** Show a chart as a table, or as a chart again. */
export function toggleTable(view: View, chart: string): View {
  const others = named(view).filter((each) => each !== chart);
  const charts = isTable(view, chart) ? others : [...others, chart];
  return extra(view, "table", charts.length ? charts.join(".") : null);
}
