import { useHere } from "../app/router";
import { Empty } from "./states";

/** Says that a view is empty, and leads to one that is not. `when` are the dates that have nothing. */
export function NothingHere({
  title,
  when,
  way = "Show the last 30 days",
}: {
  title: string;
  when?: string;
  way?: string;
}) {
  const { view, to } = useHere();
  const filtered = view.filters.length > 0;
  return (
    <Empty title={title}>
      {when && (
        <p>
          {when} has no rows{filtered && " that match the filters"}.
        </p>
      )}
      <a className="button" href={to({ ...view, period: "30d", start: null, end: null, filters: [] })}>
        {way}
        {filtered && " without filters"}
      </a>
    </Empty>
  );
}
