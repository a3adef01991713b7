import type { Aggregate, Bucket } from "../../api/shapes";
import { isNobody } from "../../format/names";
import { at, larger, read, sum, type Units } from "../../money/money";
import { filterValue, keyOf } from "../costs/facts";

/** One line of a bill: what one value costs in each month, and the products that make it up. */
export interface Line {
  value: string | null;
  amounts: readonly Units[];
  total: Units;
  parts: readonly Line[];
}

export interface Statement {
  lines: readonly Line[];
  amounts: readonly Units[];
  total: Units;
  /** Whether the lines are all there is: their sum is the service's own total. */
  isWhole: boolean;
}

/** Arrange sums by month in lines: the largest first, those without an owner last. `by` are one column or two. */
export function statement(answer: Aggregate, by: readonly string[], months: readonly string[]): Statement {
  const lines = linesOf(answer.buckets, by, months);
  const amounts = months.map((_, n) => sum(lines.map((each) => at(each.amounts, n))));
  const total = sum(lines.map((each) => each.total));
  return { lines, amounts, total, isWhole: total === read(answer.total_amount) };
}

function linesOf(buckets: readonly Bucket[], by: readonly string[], months: readonly string[]): Line[] {
  const [column, ...more] = by;
  if (column === undefined) return [];
  const groups = Map.groupBy(buckets, (each) => keyOf(each.dimensions[column] ?? null));
  const lines = [...groups.values()].map((list): Line => {
    const amounts = months.map((month) =>
      sum(list.filter((each) => each.time_bucket === month).map((each) => read(each.total_amount))),
    );
    const value = list[0]?.dimensions[column] ?? null;
    return { value, amounts, total: sum(amounts), parts: linesOf(list, more, months) };
  });
  const last = (line: Line) => Number(isNobody(column, line.value));
  return lines.sort((a, b) => last(a) - last(b) || larger(a.total, b.total) || compare(column, a, b));
}

function compare(column: string, a: Line, b: Line): number {
  return filterValue(column, a.value) < filterValue(column, b.value) ? -1 : 1;
}
