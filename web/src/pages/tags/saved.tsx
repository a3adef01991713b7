import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { TRIAL } from "../../api/answer";
import { get, send } from "../../api/client";
import { asProblem, Problem } from "../../api/problems";
import type { Tag } from "../../api/shapes";
import { useHere } from "../../app/router";
import { ReachesClosed } from "../../ui/closed";
import { isAsSaved, type Place, placeOf, restoringOf, type SavedTags } from "./undo";

/** The most pages of tags that are read to know those of some places. */
const MOST_PAGES = 10;

/** The tags at some places, read page by page; null where a key has too many tags. */
export async function tagsAt(tenant: string, places: readonly Place[]): Promise<Tag[] | null> {
  const wanted = new Set(places.map(placeOf));
  const found: Tag[] = [];
  for (const tag_key of new Set(places.map((each) => each.tag_key)))
    for (let [page, pages] = [1, 1]; page <= pages; page++) {
      const answer = await get(tenant, "/tags", { query: { tag_key, page, page_size: 1000 } });
      pages = answer.pages;
      if (pages > MOST_PAGES) return null;
      found.push(...answer.items.filter((each) => wanted.has(placeOf(each))));
    }
  return found;
}

const CHANGED = new Problem(
  412,
  "Nothing was undone",
  "Some of these tags were changed after you saved them. Undoing your change would undo that, too.",
);

interface Props {
  /** What was done, in words. */
  done: string;
  places: readonly Place[];
  /** The tags before and after the change; null where they are not known. */
  saved: SavedTags | null;
  author: string;
}

/** What was done with tags, and the way back. */
export function SavedTagsNotice({ done, places, saved, author: created_by }: Props) {
  const tenant = useHere().tenant ?? "";
  const client = useQueryClient();
  const notice = useRef<HTMLParagraphElement>(null);
  const restoring = saved && restoringOf(saved);
  const undo = useMutation({
    mutationFn: async (restating: { restate_closed?: true; reason?: string }) => {
      const now = await tagsAt(tenant, places);
      if (!saved || !restoring || !now || !isAsSaved(saved, now)) throw CHANGED;
      const { values, none } = restoring;
      const replacing = { override_existing: true, replace_periods: true, created_by };
      if (values.length > 0)
        await send("post", tenant, "/tags/bulk", { body: { items: values, ...replacing, ...restating } });
      if (none.length > 0) await send("post", tenant, "/tags/bulk-delete", { body: { items: none, ...restating } });
    },
    onSuccess: () => client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== TRIAL }),
  });
  const problem = undo.isError ? asProblem(undo.error) : null;
  // The button that was pressed is gone: keys go on from here.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the undo takes away its button, too
  useEffect(() => notice.current?.focus(), [undo.isSuccess]);
  return (
    <>
      <p ref={notice} className="banner good" role="status" tabIndex={-1}>
        {undo.isSuccess ? "Undone: the tags are as they were before." : done}
        {restoring && !undo.isSuccess && (
          <button type="button" className="button" disabled={undo.isPending} onClick={() => undo.mutate({})}>
            Undo
          </button>
        )}
      </p>
      {problem?.reaching && (
        <ReachesClosed
          of={problem.reaching}
          onRestate={(reason) => undo.mutate({ restate_closed: true, reason })}
          isPending={undo.isPending}
        />
      )}
      {problem && !problem.reaching && (
        <p className="banner bad" role="alert">
          <span>
            <b>{problem.title}.</b> {problem.detail}
          </span>
        </p>
      )}
    </>
  );
}
