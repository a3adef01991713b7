import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { tell } from "../api/client";
import { asProblem } from "../api/problems";
import { tenantPath, useCosts, useTags, useTenant } from "../api/questions";
import type { Tag, Tenant } from "../api/shapes";
import { useHere } from "../app/router";
import { RankedList } from "../charts/ranked";
import { count, instant } from "../format/days";
import { percent } from "../format/money";
import { read } from "../money/money";
import { Card } from "../ui/card";
import { matches } from "../ui/filters";
import { Answered, Bone, Empty } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { extra, toggle } from "../url/view";
import { comparison, ranked } from "./costs/facts";
import { TagForm } from "./tagform";

/** Who owns what: the keys, how much of the cost has them, their values, and the things that carry them. */
export function TagsPage() {
  const here = useHere();
  const tenant = useTenant(here.tenant ?? "").data;
  const keys = tenant?.tag_keys ?? [];
  const key = here.view.extra.key ?? keys[0]?.key ?? null;
  return (
    <>
      <Toolbar shown={here.view.start && here.view.end ? { start: here.view.start, end: here.view.end } : null} />
      {tenant && keys.length === 0 && (
        <Empty title="There are no tags yet">
          <p>
            Tag an identity or a resource with its team, and its cost is the team’s. The Unowned page is a good place to
            begin.
          </p>
        </Empty>
      )}
      {keys.length > 0 && (
        <div className="split">
          <div className="main-part">
            <Keys tenant={tenant} chosen={key} />
            {key && <Values tagKey={key} />}
          </div>
          <Entities tagKey={key} canTag={tenant?.features.can_tag ?? false} />
        </div>
      )}
    </>
  );
}

function Keys({ tenant, chosen }: { tenant: Tenant | undefined; chosen: string | null }) {
  const here = useHere();
  return (
    <Card title="Keys" note="and the part of the cost that has them">
      <ul className="ranked">
        {(tenant?.tag_keys ?? []).map(({ key, coverage }) => {
          const part = coverage === null ? null : Number(coverage);
          return (
            <li key={key}>
              <a
                className={`row ${key === chosen ? "picked" : ""}`}
                href={here.to(extra(here.view, "key", key))}
                data-replace=""
                aria-current={key === chosen ? "true" : undefined}
              >
                <span className="name">{key}</span>
                <span className="amount num">{percent(part)}</span>
                <span className="track" aria-hidden="true">
                  <i className="k-bar" style={{ width: `${(part ?? 0) * 100}%` }} />
                </span>
              </a>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function Values({ tagKey }: { tagKey: string }) {
  const here = useHere();
  const by = `tag:${tagKey}`;
  const query = useCosts(here.tenant ?? "", here.view, [by], by, [["top", "50"]]);
  const listing = {
    ...here,
    to: (view: typeof here.view) => here.to(view, "item"),
    colour: (_: string | null, index: number) => (index < 0 ? "k-others" : "k-bar"),
  };
  return (
    <Card title="Values" note={tagKey}>
      <Answered query={query} skeleton={<Bone height={16} />}>
        {(costs) => {
          const found = costs.breakdowns[0];
          if (!found || costs.total.rows === 0) return <p className="note">No costs in this view.</p>;
          return (
            <RankedList
              items={ranked(found, 50, { ...listing, view: here.view })}
              whole={read(costs.total.amount)}
              currency={costs.currency}
              comparable={comparison(costs).comparable}
            />
          );
        }}
      </Answered>
    </Card>
  );
}

function Entities({ tagKey, canTag }: { tagKey: string | null; canTag: boolean }) {
  const here = useHere();
  const [page, setPage] = useState(1);
  const [text, setText] = useState(here.view.extra.find ?? "");
  const query = useTags(here.tenant ?? "", tagKey, page);
  const [chosen, setChosen] = useState<readonly Tag[]>([]);
  return (
    <Card
      title="What carries it"
      note={query.data && count(query.data.total, "tag")}
      action={
        <input
          className="field"
          type="search"
          aria-label="Find among these"
          placeholder="Find among these"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      }
    >
      <Answered query={query} skeleton={<Bone height={20} />}>
        {(found) => (
          <>
            <TagTable
              tags={found.items.filter((each) => matches(`${each.entity_id} ${each.tag_value}`, text))}
              canTag={canTag}
              chosen={chosen}
              onChoose={setChosen}
            />
            {found.pages > 1 && (
              <p className="tools">
                <button type="button" className="button" disabled={page <= 1} onClick={() => setPage(page - 1)}>
                  Before
                </button>
                <span className="note">
                  page {page} of {found.pages}
                </span>
                <button
                  type="button"
                  className="button"
                  disabled={page >= found.pages}
                  onClick={() => setPage(page + 1)}
                >
                  Next
                </button>
              </p>
            )}
          </>
        )}
      </Answered>
      {canTag && chosen.length > 0 && (
        <TagForm entities={chosen.map((each) => ({ type: each.entity_type, id: each.entity_id, name: null }))} />
      )}
    </Card>
  );
}

interface TableProps {
  tags: readonly Tag[];
  canTag: boolean;
  chosen: readonly Tag[];
  onChoose: (tags: readonly Tag[]) => void;
}

function TagTable({ tags, canTag, chosen, onChoose }: TableProps) {
  const here = useHere();
  const pick = (tag: Tag, on: boolean) =>
    onChoose(on ? [...chosen, tag] : chosen.filter((each) => each.tag_id !== tag.tag_id));
  return (
    <Table className="tall" label="Table of tags" heads={["What", "Value", "By", "Since", canTag && "Change"]}>
      {tags.map((tag) => (
        <tr key={tag.tag_id}>
          <th scope="row">
            <span className="check">
              {canTag && (
                <input
                  type="checkbox"
                  aria-label={`Choose ${tag.entity_id}`}
                  checked={chosen.some((each) => each.tag_id === tag.tag_id)}
                  onChange={(event) => pick(tag, event.target.checked)}
                />
              )}
              {tag.entity_id} <span className="quiet small">{tag.entity_type}</span>
            </span>
          </th>
          <td>
            <a
              className="more"
              href={here.to(
                toggle({ ...here.view, extra: {}, filters: [] }, `tag:${tag.tag_key}`, tag.tag_value),
                "item",
              )}
            >
              {tag.tag_value}
            </a>
          </td>
          <td className="quiet">{tag.created_by}</td>
          <td className="quiet num small">{instant(tag.created_at)}</td>
          {canTag && (
            <td>
              <Remove tag={tag} />
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

/** Asks once more before a tag goes. */
function Remove({ tag }: { tag: Tag }) {
  const { tenant } = useHere();
  const client = useQueryClient();
  const [sure, setSure] = useState(false);
  const path = `entities/${tag.entity_type}/${encodeURIComponent(tag.entity_id)}/tags/${encodeURIComponent(tag.tag_key)}`;
  const remove = useMutation({
    mutationFn: () => tell("DELETE", tenantPath(tenant ?? "", path)),
    onSuccess: () => client.invalidateQueries(),
  });
  if (remove.isError) return <span className="bad small">{asProblem(remove.error).detail}</span>;
  return (
    <button
      type="button"
      className="more"
      onClick={() => (sure ? remove.mutate() : setSure(true))}
      onBlur={() => setSure(false)}
    >
      {sure ? "Really remove?" : "Remove"}
      <span className="sr">
        {" "}
        {tag.tag_key} of {tag.entity_id}
      </span>
    </button>
  );
}
