import { useQuery } from "@tanstack/react-query";
import { ask } from "../api/client";
import { tenantPath } from "../api/questions";
import type { Identity, Page, Resource, Tag } from "../api/shapes";
import { useHere } from "../app/router";
import { full, instant, inTime } from "../format/days";
import { dimension, type } from "../format/names";
import { nameOf } from "../ui/filters";
import { Empty } from "../ui/states";
import type { Filter } from "../url/view";
import { CostsView } from "./costs";
import { isStated, statementOf } from "./statement/address";

const LISTS: Record<string, { path: string; entity: string }> = {
  identity_id: { path: "identities", entity: "identity" },
  resource_id: { path: "resources", entity: "resource" },
  environment_id: { path: "resources", entity: "resource" },
};

type Entity = Partial<Identity> & Partial<Resource>;

/** The bill of one identity, resource or tag: the costs page with that as a filter, under its name. */
export function ItemPage() {
  const { view } = useHere();
  const subject = view.filters.find((each) => !each.not);
  if (!subject)
    return (
      <Empty title="Whose bill?">
        <p>Find an identity, a resource or a tag with the key /.</p>
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
  const list = LISTS[subject.key];
  const name = here.tenant ?? "";
  const entity = useQuery<Entity | null>({
    queryKey: ["entity", name, subject.key, subject.value],
    enabled: list !== undefined,
    queryFn: async ({ signal }) => {
      const found = await ask<Page<Entity>>(
        tenantPath(name, list?.path ?? ""),
        [
          ["search", subject.value],
          ["page_size", "50"],
        ],
        signal,
      );
      return found.items.find((each) => (each.identity_id ?? each.resource_id) === subject.value) ?? null;
    },
  }).data;
  const tags = useQuery<Tag[]>({
    queryKey: ["tags of", name, subject.key, subject.value],
    enabled: list !== undefined,
    queryFn: ({ signal }) =>
      ask(tenantPath(name, `entities/${list?.entity}/${encodeURIComponent(subject.value)}/tags`), [], signal),
  }).data;
  const kind = entity?.identity_type ?? entity?.resource_type;
  return (
    <section className="card item-head" aria-labelledby="item-name">
      <p className="note">{kind ? type(kind) : dimension(subject.key)}</p>
      <h2 id="item-name">{entity?.display_name ?? nameOf(subject)}</h2>
      <p className="note">
        {entity?.display_name && entity.display_name !== subject.value && <span>{subject.value} · </span>}
        {entity?.created_at && <span>since {full(entity.created_at)}</span>}
        {entity?.deleted_at && <span> · deleted {full(entity.deleted_at)}</span>}
        {entity?.last_seen_at && !entity.deleted_at && <span> · last seen {instant(entity.last_seen_at)}</span>}
      </p>
      <p className="tools">
        {(tags ?? []).map((each) => (
          <span className="badge" key={each.tag_id}>
            {each.tag_key}: {each.tag_value}
            {inTime(each)}
          </span>
        ))}
        {tags?.length === 0 && <span className="note">no tags</span>}
        <span className="fill" />
        {isStated(subject.key) && (
          <a className="more" href={here.to(statementOf(here.view, subject.key, subject.value), "statement")}>
            Its statement
          </a>
        )}
        <a className="more" href={here.to({ ...here.view, extra: {} }, "rows")}>
          Its rows
        </a>
        <a className="more" href={here.to({ ...here.view, filters: [], extra: { find: subject.value } }, "tags")}>
          Its tags
        </a>
        <button type="button" className="button" onClick={() => print()}>
          Print
        </button>
      </p>
    </section>
  );
}
