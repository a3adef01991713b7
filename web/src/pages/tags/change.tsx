import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "preact/compat";
import { askAgain, TRIAL, useAnswer } from "../../api/answer";
import { send as change } from "../../api/client";
import { asProblem } from "../../api/problems";
import type { Effect, Tag } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full, inTime } from "../../format/days";
import { ReachesClosed } from "../../ui/closed";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
import { SavedTagsNotice, tagsAt } from "./saved";

export interface TagItem {
  entity_type: Tag["entity_type"];
  entity_id: string;
  tag_key: string;
  tag_value: string;
  /** The first UTC day on which the value holds; without it, the value has no first day. */
  valid_from?: string;
  /** The UTC day from which on it holds no more. */
  valid_to?: string;
}

/** What is done with tags: `add` leaves values that are there, `change` replaces them. */
export type Mode = "add" | "change" | "remove";

export const MODES: Record<Mode, string> = {
  add: say("Add, and leave values that are there"),
  change: say("Add, and replace values that are there"),
  remove: say("Remove"),
};

/** What has tags, in words. */
export const TYPES: Record<Tag["entity_type"], string> = {
  identity: say("identity"),
  resource: say("resource"),
};

export interface Change {
  mode: Mode;
  items: readonly TagItem[];
  author: string;
}

/** How a change is sent: only to ask what it would do; or, with a reason, although it moves amounts of closed months. */
interface Sending {
  dry_run?: true;
  restate_closed?: true;
  reason?: string;
}

function send(tenant: string, { mode, items, author }: Change, how: Sending): Promise<Effect> {
  if (mode !== "remove") {
    const body = { items, created_by: author, override_existing: mode === "change", ...how };
    return change("post", tenant, "/tags/bulk", { body });
  }
  const places = items.map(({ entity_type, entity_id, tag_key }) => ({ entity_type, entity_id, tag_key }));
  return change("post", tenant, "/tags/bulk-delete", { body: { items: places, ...how } });
}

/** The tags that a change is about; null where they are not known, which is no reason to change nothing. */
const known = (tenant: string, { items }: Change): Promise<Tag[] | null> => tagsAt(tenant, items).catch(() => null);

/** The same change from a day on; values that begin later stay as they are. */
export function beginningOn(day: string, { items, ...change }: Change): Change {
  const begun = items.filter(({ valid_to }) => valid_to === undefined || valid_to > day);
  return {
    ...change,
    items: begun.map((each) => (each.valid_from && each.valid_from > day ? each : { ...each, valid_from: day })),
  };
}

/** What a change would do, as the service says, and the button that does it. */
export function Preview({ change: meant }: { change: Change }) {
  const { tenant } = useHere();
  const [begins, setBegins] = useState<string | null>(null);
  const change = begins === null ? meant : beginningOn(begins, meant);
  const name = tenant ?? "";
  const client = useQueryClient();
  const trial = useAnswer({
    key: [TRIAL, name, change],
    of: change,
    ask: () => send(name, change, { dry_run: true }),
    alone: true,
    again: "once",
  });
  const write = useMutation({
    mutationFn: async (how: Sending) => {
      const before = await known(name, change);
      const effect = await send(name, change, how);
      const after = before && (await known(name, change));
      return { effect, saved: before && after && { before, after } };
    },
    onSuccess: () => askAgain(client),
  });
  const problem = write.isError ? asProblem(write.error) : null;
  if (write.isSuccess)
    return (
      <SavedTagsNotice
        done={inWords(write.data.effect, "did")}
        places={change.items}
        saved={write.data.saved}
        author={change.author}
      />
    );
  return (
    <Answered answer={trial} skeleton={<Bone height={6} />}>
      {(effect) => (
        <>
          <p className="banner">
            <b>{inWords(effect, "would")}</b>
            <span className="fill" />
            <button
              type="button"
              className="button primary"
              disabled={write.isPending || changes(effect) === 0}
              onClick={() => write.mutate({})}
            >
              {change.mode === "remove" ? say("Remove") : say("Write")}
            </button>
          </p>
          {begins !== null && (
            <p className="note">{say("From {day} on; what was before stays as it is.", { day: full(begins) })}</p>
          )}
          {problem?.reaching ? (
            <ReachesClosed
              of={problem.reaching}
              onBegin={
                change.mode === "remove"
                  ? undefined
                  : (day) => {
                      write.reset();
                      setBegins(day);
                    }
              }
              onRestate={(reason) => write.mutate({ restate_closed: true, reason })}
              isPending={write.isPending}
            />
          ) : (
            problem && (
              <p role="alert" className="bad">
                {problem.detail}
              </p>
            )
          )}
          <Entities effect={effect} change={change} />
        </>
      )}
    </Answered>
  );
}

function changes({ created_count = 0, updated_count = 0, deleted_count = 0 }: Effect): number {
  return created_count + updated_count + deleted_count;
}

/** `2 created, 1 changed, 0 left as they were.` */
export function inWords(effect: Omit<Effect, "entities">, tense: "did" | "would"): string {
  const { created_count: created = 0, updated_count: changed = 0, skipped_count: left = 0 } = effect;
  const { deleted_count: removed, missing_count: missing = 0 } = effect;
  if (removed !== undefined)
    return tense === "would"
      ? say("{removed} would be removed, {missing} not there.", { removed, missing })
      : say("{removed} removed, {missing} not there.", { removed, missing });
  return tense === "would"
    ? say("{created} would be created, {changed} changed, {left} left as they are.", { created, changed, left })
    : say("{created} created, {changed} changed, {left} left as they were.", { created, changed, left });
}

const MOST = 200;

function Entities({ effect, change }: { effect: Effect; change: Change }) {
  const { entities } = effect;
  if (!entities?.length) return null;
  return (
    <>
      <Table className="tall" label={say("What would change")} heads={[say("What"), say("Tags"), say("Effect")]}>
        {entities.slice(0, MOST).map((each) => (
          <tr key={`${each.entity_type} ${each.entity_id}`}>
            <th scope="row">
              {each.entity_id} <span className="quiet small">{TYPES[each.entity_type]}</span>
            </th>
            <td>
              {change.items
                .filter((item) => item.entity_id === each.entity_id && item.entity_type === each.entity_type)
                .map((item) => (
                  <span className="badge" key={`${item.tag_key} ${item.valid_from}`}>
                    {item.tag_key}
                    {item.tag_value && `: ${item.tag_value}`}
                    {item.tag_value && inTime(item)}
                  </span>
                ))}
            </td>
            <td className={changes(each) ? "" : "quiet"}>{effectOf(each)}</td>
          </tr>
        ))}
      </Table>
      {entities.length > MOST && (
        <p className="note">{say("The first {most} of {n} {n|thing|things}.", { most: MOST, n: entities.length })}</p>
      )}
    </>
  );
}

function effectOf(each: Omit<Effect, "entities">): string {
  const named: [number | undefined, string][] = [
    [each.created_count, say("new [a tag]")],
    [each.updated_count, say("changed")],
    [each.skipped_count, say("left as it is")],
    [each.deleted_count, say("removed")],
    [each.missing_count, say("not there")],
  ];
  const found = named.filter(([number]) => number);
  const [only] = found;
  if (found.length === 1 && only?.[0] === 1) return only[1];
  return found.map(([number, what]) => `${number} ${what}`).join(", ");
}
