import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { rowsPage, rowsQuery, tenantPath, useTenant } from "../../api/questions";
import type { Page, Row } from "../../api/shapes";
import { useHere } from "../../app/router";
import { count } from "../../format/days";
import { Bone, Empty, Failure } from "../../ui/states";
import { Toolbar } from "../../ui/toolbar";
import { apiQuery, extra } from "../../url/view";
import { RowsTable } from "./table";
import { Why } from "./why";

const SIZE = 200;
/** Browsers do not draw a table of any height. */
export const MOST_ROWS = 200_000;

const SORTS: Record<string, readonly (readonly [string, string])[]> = {
  day: [],
  most: [
    ["sort_by", "amount"],
    ["sort_order", "desc"],
  ],
  least: [
    ["sort_by", "amount"],
    ["sort_order", "asc"],
  ],
};

/** Every share of every billing line, to the last digit. */
export function RowsPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const tenant = useTenant(name).data;
  const sort = here.view.extra.sort ?? "day";
  const query = rowsQuery(here.view, SORTS[sort] ?? []);
  const [pages, setPages] = useState<readonly number[]>([1]);
  const [why, setWhy] = useState<Row | null>(null);
  const client = useQueryClient();
  const found = useQueries({
    queries: [...new Set([1, ...pages])].map((page) => ({
      queryKey: ["rows", name, query, page],
      queryFn: ({ signal }: { signal: AbortSignal }) => rowsPage(name, query, page, SIZE, signal),
    })),
  });
  const [first] = found;
  const rowAt = useCallback(
    (index: number) =>
      client.getQueryData<Page<Row>>(["rows", name, query, Math.floor(index / SIZE) + 1])?.items[index % SIZE],
    [client, name, query],
  );
  const onRange = useCallback((from: number, to: number) => {
    const wanted = [Math.floor(from / SIZE) + 1, Math.floor(to / SIZE) + 1];
    setPages((old) => (old.length === 2 && old[0] === wanted[0] && old[1] === wanted[1] ? old : wanted));
  }, []);
  const data = first?.data;
  const shown = here.view.start && here.view.end ? { start: here.view.start, end: here.view.end } : null;
  const file = {
    path: tenantPath(name, "chargebacks.csv"),
    query: apiQuery(here.view, { compare: false }),
    name: `${name}-rows.csv`,
  };
  return (
    <>
      <Toolbar shown={shown} compare={false} file={file} />
      {first?.failureReason && !data ? <Failure error={first.failureReason} retry={first.refetch} /> : null}
      {!data && !first?.failureReason && <Bone height={36} />}
      {data && data.total === 0 && (
        <Empty title="No rows in this view">
          <a className="button" href={here.to({ ...here.view, period: "30d", start: null, end: null, filters: [] })}>
            Show the last 30 days without filters
          </a>
        </Empty>
      )}
      {data && data.total > 0 && (
        <section className="card rows" aria-labelledby="rows-title">
          <header>
            <h2 id="rows-title">{count(data.total, "row")}</h2>
            <span className="note">one share of one billing line each; press one to see why</span>
            <span className="fill" />
            <nav className="segments" aria-label="Order">
              {(["day", "most", "least"] as const).map((each) => (
                <a
                  key={each}
                  href={here.to(extra(here.view, "sort", each === "day" ? null : each))}
                  data-replace=""
                  aria-current={sort === each ? "true" : undefined}
                >
                  {{ day: "By day", most: "Most first", least: "Least first" }[each]}
                </a>
              ))}
            </nav>
          </header>
          {data.total > MOST_ROWS && (
            <p className="note cap">
              The first {MOST_ROWS.toLocaleString("en-US")} are shown. Narrow the view, or take all of them as CSV.
            </p>
          )}
          <RowsTable
            key={JSON.stringify(query)}
            total={Math.min(data.total, MOST_ROWS)}
            currency={tenant?.currency ?? ""}
            rowAt={rowAt}
            onRange={onRange}
            onWhy={setWhy}
          />
        </section>
      )}
      {why && <Why row={why} currency={tenant?.currency ?? "USD"} onClose={() => setWhy(null)} />}
    </>
  );
}
