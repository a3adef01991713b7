import { useHere } from "../app/router";
import { say } from "../words/say";
import { Empty } from "./states";

/** Says that a view is empty, and leads to one that is not. `when` are the dates that have nothing. */
export function NothingHere({
  title,
  when,
  way = say("Show the last 30 days"),
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
          {filtered
            ? say("{when} has no rows that match the filters.", { when })
            : say("{when} has no rows.", { when })}
        </p>
      )}
      <a className="button" href={to({ ...view, period: "30d", start: null, end: null, filters: [] })}>
        {filtered ? say("{way} without filters", { way }) : way}
      </a>
    </Empty>
  );
}
