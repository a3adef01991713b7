import { useCosts } from "../../api/questions";
import type { Day } from "../../calendar/days";
import { range } from "../../format/days";
import { Answered } from "../../ui/states";
import type { View } from "../../url/view";
import { say } from "../../words/say";
import { Tried, useTrial } from "../policies/tried";
import type { CategoryDocument } from "./document";

interface Props {
  tenant: string;
  category: string;
  document: CategoryDocument;
}

/** Tries the rules of a category as policies are tried: who would pay more, who less, and what closed months would get. */
export function TryOn({ view, ...rules }: Props & { view: View }) {
  const costs = useCosts(rules.tenant, { ...view, filters: [] }, ["product_type"], { top: 1 });
  return (
    <Answered answer={costs} skeleton={null}>
      {({ start_date: start, end_date: end }) => (
        <Trial key={JSON.stringify(rules.document)} {...rules} start={start} end={end} />
      )}
    </Answered>
  );
}

function Trial({ tenant, category, document, start, end }: Props & { start: Day; end: Day }) {
  const { asked, mistakes } = useTrial(tenant, start, end);
  const what = { cost_categories: { [category]: { ...document } }, group_by: [`category:${category}`] };
  return (
    <>
      <p className="tools">
        <button type="button" className="button" disabled={asked.isPending} onClick={() => asked.mutate(what)}>
          {say("Try it, {days}", { days: range(start, end) })}
        </button>
        <span className="note">{say("Nothing is stored or changed.")}</span>
      </p>
      {mistakes && (
        <p role="alert" className="bad">
          {mistakes.join(" ")}
        </p>
      )}
      {asked.data && <Tried tenant={tenant} id={asked.data.id} />}
    </>
  );
}
