/** When a saved change of a cost category can be undone: while nobody has changed it since. */
import type { Versioned } from "../../api/client";
import { Problem } from "../../api/problems";
import type { Category } from "../../api/shapes";
import { instant } from "../../format/days";
import { say } from "../../words/say";

/** A saved change: its version, and the version that it replaced. */
export interface Saved {
  version: number;
  etag: string | null;
  replaced: number;
}

/** What saving on top of a version did; null if it said the same, which makes no version. */
export function savedOf(before: Versioned<Category>, after: Versioned<Category>): Saved | null {
  const [{ version: replaced }, { version }] = [before.body, after.body];
  return version === replaced ? null : { version, etag: after.etag, replaced };
}

/** What can be undone of a category as it is now, by its history, the newest first; null if nothing can. */
export function lastOf(
  { body, etag }: Versioned<Category>,
  [newest, before]: readonly { version: number; removed: boolean }[],
): Saved | null {
  if (newest?.version !== body.version || !before || before.removed) return null;
  return { version: body.version, etag, replaced: before.version };
}

/** Why a saved change cannot be undone any more; null if it can. The ETag tells apart two versions of one number. */
export function refusalOf(saved: Saved, { body, etag }: Versioned<Category>): Problem | null {
  if (etag === saved.etag) return null;
  const { version, who, at } = body;
  const theirs = say("Version {version} was saved by {who}, {time}, after your version {yours}.", {
    version: `${version}`,
    who,
    time: instant(at),
    yours: `${saved.version}`,
  });
  const then = say("Putting version {version} back would undo that, too.", { version: `${saved.replaced}` });
  return new Problem(412, say("Nothing was undone"), `${theirs} ${then}`);
}
