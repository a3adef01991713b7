import { missing, present } from "../../api/answer";
import { useTenant } from "../../api/questions";
import { useHere } from "../../app/router";
import { length } from "../../calendar/days";
import { sumsFile } from "../../ui/csv";
import { Toolbar } from "../../ui/toolbar";
import { resolve } from "../../url/period";
import { during } from "../../url/view";
import { leadingTag } from "../costs/facts";
import { FlowMap } from "./flow";
import { GraphMap } from "./graph";
import { DaySlider, dayOf } from "./slider";

/** Environment, resource and who: an estimate of how many there are together, for the size of a file. */
const MOST_PATHS = 1000;

/** What topics can be filtered by. */
const OF_TOPICS = ["product_type", "product_category", "resource_id", "environment_id"];

/** What is in what, and where the money goes: of a period, or of one day after the other. */
export function MapPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const answer = useTenant(name);
  const tenant = present(answer);
  const tag = leadingTag(tenant);
  const topics = tenant?.features.topics && here.view.filters.every((each) => OF_TOPICS.includes(each.key));
  const parts = ["identities" as const, ...(topics ? ["topics" as const] : [])];
  const ends = [...parts, ...(tag ? [tag] : []), "product_type"];
  const end = ends.find((each) => each === here.view.extra.to) ?? "identities";
  const last = tenant?.last_date;
  const period = last ? resolve(here.view, last) : null;
  const day = period && dayOf(here.view.extra.day, period);
  const view = day ? during(here.view, day, day) : here.view;
  const days = period && !day ? length(period.start, period.end) : 1;
  const leaves = parts.find((each) => each === end);
  const by = ["environment_id", "resource_id", leaves ? "identity_id" : end];
  const known = tenant !== undefined || missing(answer)?.problem !== null;
  return (
    <>
      <Toolbar file={sumsFile(name, view, by, { values: MOST_PATHS, days })} />
      {period && <DaySlider period={period} day={day} />}
      {leaves ? (
        <GraphMap view={view} leaves={leaves} ends={ends} enabled={known} />
      ) : (
        <FlowMap view={view} by={by} ends={ends} enabled={known} />
      )}
    </>
  );
}
