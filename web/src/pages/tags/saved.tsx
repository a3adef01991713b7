import { useMutation, useQueryClient } from "@tanstack/react-query";
import { askAgain } from "../../api/answer";
import { get, send } from "../../api/client";
import { Problem } from "../../api/problems";
import type { Tag } from "../../api/shapes";
import { useHere } from "../../app/router";
import { SavedBanner } from "../../ui/saved";
import { say } from "../../words/say";
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
  say("Nothing was undone"),
  say("Some of these tags were changed after you saved them. Undoing your change would undo that, too."),
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
    onSuccess: () => askAgain(client),
  });
  return (
    <SavedBanner
      done={done}
      undone={say("Undone: the tags are as they were before.")}
      undo={undo}
      onUndo={restoring && (() => undo.mutate({}))}
      onRestate={(reason) => undo.mutate({ restate_closed: true, reason })}
    />
  );
}
