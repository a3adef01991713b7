import { present, useAnswer } from "../api/answer";
import { ENTITIES, entityOf } from "../api/entities";
import { useOf } from "../api/questions";
import { useHere } from "../app/router";
import { full, instant, inTime } from "../format/days";
import { dimension, type } from "../format/names";
import { useFilterNames } from "../ui/filters";
import { Empty } from "../ui/states";
import type { Filter } from "../url/view";
import { say } from "../words/say";
import { CostsView } from "./costs";
import { isStated, statementOf } from "./statement/address";

/** The bill of one identity, resource or tag: the costs page with that as a filter, under its name. */
export function ItemPage() {
  const { view } = useHere();
  const subject = view.filters.find((each) => !each.not);
  if (!subject)
    return (
      <Empty title={say("Whose bill?")}>
        <p>{say("Find an identity, a resource or a tag with the key /.")}</p>
      </Empty>
    );
  return (
    <CostsView
      head={<Head subject={subject} />}
      leave={[subject.key]}
      usual={subject.key === "product_type" ? "identity_id" : "product_type"}
    />
  );
}

function Head({ subject }: { subject: Filter }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const entity = present(useAnswer(entityOf(name, subject)));
  const [called] = useFilterNames([subject]);
  const entity_type = ENTITIES[subject.key];
  const tags = present(
    useOf(
      name,
      "/entities/{entity_type}/{entity_id}/tags",
      { at: { entity_type: entity_type ?? "", entity_id: subject.value } },
      entity_type !== undefined,
    ),
  );
  return (
    <section className="card item-head" aria-labelledby="item-name">
      <p className="note">{entity ? type(entity.type) : dimension(subject.key)}</p>
      <h2 id="item-name">{called}</h2>
      <p className="note">
        {entity?.display_name && entity.display_name !== subject.value && <span>{subject.value} · </span>}
        {entity?.created_at && <span>{say("since {day}", { day: full(entity.created_at) })}</span>}
        {entity?.deleted_at && <span> · {say("deleted {day}", { day: full(entity.deleted_at) })}</span>}
        {entity?.last_seen_at && !entity.deleted_at && (
          <span> · {say("last seen {time}", { time: instant(entity.last_seen_at) })}</span>
        )}
      </p>
      <p className="tools">
        {tags?.map((each) => (
          <span className="badge" key={each.tag_id}>
            {each.tag_key}: {each.tag_value}
            {inTime(each)}
          </span>
        ))}
        {tags?.length === 0 && <span className="note">{say("no tags")}</span>}
        <span className="fill" />
        {isStated(subject.key) && (
          <a className="more" href={here.to(statementOf(here.view, subject.key, subject.value), "statement")}>
            {say("Its statement")}
          </a>
        )}
        <a className="more" href={here.to({ ...here.view, extra: {} }, "rows")}>
          {say("Its rows")}
        </a>
        <a className="more" href={here.to({ ...here.view, filters: [], extra: { find: subject.value } }, "tags")}>
          {say("Its tags")}
        </a>
        <button type="button" className="button" onClick={() => print()}>
          {say("Print")}
        </button>
      </p>
    </section>
  );
}
