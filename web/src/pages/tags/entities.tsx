import { useState } from "preact/compat";
import { address } from "../../api/address";
import { useTags } from "../../api/questions";
import type { Tag } from "../../api/shapes";
import { useHere } from "../../app/router";
import { instant, inTime } from "../../format/days";
import { Card } from "../../ui/card";
import { matches } from "../../ui/filters";
import { RemoveButton } from "../../ui/remove";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { toggle } from "../../url/view";
import { say } from "../../words/say";
import { TYPES } from "./change";
import { TagForm } from "./form";

/** What carries a key, with its values; several can be changed at once. */
export function Entities({ tagKey, canTag }: { tagKey: string | null; canTag: boolean }) {
  const here = useHere();
  const [page, setPage] = useState(1);
  const [text, setText] = useState(here.view.extra.find ?? "");
  const query = useTags(here.tenant ?? "", tagKey, page);
  const [chosen, setChosen] = useState<readonly Tag[]>([]);
  return (
    <Card
      title={say("What carries it")}
      note={query.known && say("{n} {n|tag|tags}", { n: query.known.data.total })}
      action={
        <input
          className="field"
          type="search"
          aria-label={say("Find among these")}
          placeholder={say("Find among these")}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      }
    >
      <Answered answer={query} skeleton={<Bone height={20} />}>
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
                  {say("Before [the page]")}
                </button>
                <span className="note">{say("page {page} of {pages}", { page, pages: found.pages })}</span>
                <button
                  type="button"
                  className="button"
                  disabled={page >= found.pages}
                  onClick={() => setPage(page + 1)}
                >
                  {say("Next [the page]")}
                </button>
              </p>
            )}
          </>
        )}
      </Answered>
      {canTag && chosen.length > 0 && (
        <TagForm
          key={chosen.map((each) => each.tag_id).join()}
          entities={[...new Map(chosen.map((each) => [`${each.entity_type} ${each.entity_id}`, each])).values()].map(
            (each) => ({ type: each.entity_type, id: each.entity_id, name: null }),
          )}
          all
          {...(tagKey ? { tagKey } : {})}
        />
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
    <Table
      className="tall"
      label={say("Table of tags")}
      heads={[say("What"), say("Value"), say("By [whom]"), say("Written"), canTag && say("Change [to edit]")]}
    >
      {tags.map((tag) => (
        <tr key={tag.tag_id}>
          <th scope="row">
            <span className="check">
              {canTag && (
                <input
                  type="checkbox"
                  aria-label={say("Choose {name}", { name: tag.entity_id })}
                  checked={chosen.some((each) => each.tag_id === tag.tag_id)}
                  onChange={(event) => pick(tag, event.currentTarget.checked)}
                />
              )}
              {tag.entity_id} <span className="quiet small">{TYPES[tag.entity_type]}</span>
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
            <span className="quiet small">{inTime(tag)}</span>
          </td>
          <td className="quiet">{tag.created_by}</td>
          <td className="quiet num small">{instant(tag.created_at)}</td>
          {canTag && (
            <td>
              <RemoveButton
                href={valueAt(here.tenant ?? "", tag)}
                what={say("{key} of {name}{dates}", { key: tag.tag_key, name: tag.entity_id, dates: inTime(tag) })}
              />
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

const VALUE = "/entities/{entity_type}/{entity_id}/tags/{tag_key}";

/** Where one value of a tag is: one that has dates is named by its first day. */
function valueAt(tenant: string, { entity_type, entity_id, tag_key, valid_from, valid_to }: Tag): string {
  return address<typeof VALUE, "delete">(tenant, VALUE, {
    at: { entity_type, entity_id, tag_key },
    query: { ...((valid_from || valid_to) && { valid_from: valid_from ?? "none" }) },
  });
}
