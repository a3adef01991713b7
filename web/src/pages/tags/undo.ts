/** How a saved change of tags is undone: while nobody has changed the same tags since. */
import type { Tag } from "../../api/shapes";
import type { TagItem } from "./change";

/** A key of something: where tags are. */
export type Place = Pick<TagItem, "entity_type" | "entity_id" | "tag_key">;

/** The tags at the places of a change, before it and after it. */
export interface SavedTags {
  before: readonly Tag[];
  after: readonly Tag[];
}

/** What puts the tags of some places back: the only value that a place had, and those that had none. */
interface Restoring {
  values: readonly TagItem[];
  none: readonly Place[];
}

export const placeOf = ({ entity_type, entity_id, tag_key }: Place): string =>
  JSON.stringify([entity_type, entity_id, tag_key]);

const textOf = ({ tag_id, tag_value, valid_from, valid_to }: Tag): string =>
  JSON.stringify([tag_id, tag_value, valid_from, valid_to]);

const textsOf = (tags: readonly Tag[]): string => tags.map(textOf).sort().join();

/** Whether the tags of some places are still those that a change left there. */
export const isAsSaved = ({ after }: SavedTags, now: readonly Tag[]): boolean => textsOf(after) === textsOf(now);

/** What undoes a change; null if it changed nothing, or if a place had several values, which cannot be put back at once. */
export function restoringOf({ before, after }: SavedTags): Restoring | null {
  const was: Tags = Map.groupBy(before, placeOf);
  const is: Tags = Map.groupBy(after, placeOf);
  const changed = [...new Set([...was.keys(), ...is.keys()])].filter(
    (place) => textsOf(was.get(place) ?? NONE) !== textsOf(is.get(place) ?? NONE),
  );
  const values = changed.map((place) => was.get(place) ?? NONE);
  if (changed.length === 0 || values.some((each) => each.length > 1)) return null;
  return {
    values: values.flat().map(itemOf),
    none: changed.filter((place) => !was.has(place)).flatMap((place) => (is.get(place) ?? NONE).slice(0, 1).map(only)),
  };
}

type Tags = Map<string, readonly Tag[]>;
const NONE: readonly Tag[] = [];

const only = ({ entity_type, entity_id, tag_key }: Place): Place => ({ entity_type, entity_id, tag_key });

function itemOf({ tag_value, valid_from, valid_to, ...place }: Tag): TagItem {
  return { ...only(place), tag_value, ...(valid_from && { valid_from }), ...(valid_to && { valid_to }) };
}
