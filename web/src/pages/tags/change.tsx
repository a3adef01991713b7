import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { askAgain, TRIAL, useAnswer } from "../../api/answer";
import { send as change } from "../../api/client";
import { asProblem } from "../../api/problems";
import type { Effect, Tag } from "../../api/shapes";
import { useHere } from "../../app/router";
import { count, full, inTime } from "../../format/days";
import { grouped } from "../../format/formats";
import { ReachesClosed } from "../../ui/closed";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
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
  add: "Add, and leave values that are there",
  change: "Add, and replace values that are there",
  remove: "Remove",
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
              {change.mode === "remove" ? "Remove" : "Write"}
            </button>
          </p>
          {begins !== null && <p className="note">From {full(begins)} on; what was before stays as it is.</p>}
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
  const { created_count = 0, updated_count = 0, skipped_count = 0, deleted_count, missing_count = 0 } = effect;
  const will = tense === "would" ? "would be " : "";
  const parts =
    deleted_count === undefined
      ? `${grouped(created_count)} ${will}created, ${grouped(updated_count)} changed, ${grouped(skipped_count)} left as they ${will ? "are" : "were"}`
      : `${grouped(deleted_count)} ${will}removed, ${grouped(missing_count)} not there`;
  return `${parts}.`;
}

const MOST = 200;

function Entities({ effect, change }: { effect: Effect; change: Change }) {
  const { entities } = effect;
  if (!entities?.length) return null;
  return (
    <>
      <Table className="tall" label="What would change" heads={["What", "Tags", "Effect"]}>
        {entities.slice(0, MOST).map((each) => (
          <tr key={`${each.entity_type} ${each.entity_id}`}>
            <th scope="row">
              {each.entity_id} <span className="quiet small">{each.entity_type}</span>
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
        <p className="note">
          The first {MOST} of {count(entities.length, "thing")}.
        </p>
      )}
    </>
  );
}

function effectOf(each: Omit<Effect, "entities">): string {
  const named: [number | undefined, string][] = [
    [each.created_count, "new"],
    [each.updated_count, "changed"],
    [each.skipped_count, "left as it is"],
    [each.deleted_count, "removed"],
    [each.missing_count, "not there"],
  ];
  const found = named.filter(([number]) => number);
  const [only] = found;
  if (found.length === 1 && only?.[0] === 1) return only[1];
  return found.map(([number, what]) => `${number} ${what}`).join(", ");
}
