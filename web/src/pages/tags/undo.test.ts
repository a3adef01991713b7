import { expect, test } from "vitest";
import type { Tag } from "../../api/shapes";
import { isAsSaved, restoringOf } from "./undo";

const tag = (tag_id: number, entity_id: string, tag_value: string, more: Partial<Tag> = {}): Tag => ({
  ...{ tag_id, tenant_id: "acme", entity_type: "identity", entity_id, tag_key: "team", tag_value },
  ...{ created_by: "alice", created_at: "2026-11-16T10:00:00Z", valid_from: null, valid_to: null, ...more },
});
const place = (entity_id: string) => ({ entity_type: "identity", entity_id, tag_key: "team" });

test("a value that was replaced is put back with its dates, what had none gets none, and the rest stays", () => {
  const before = [
    tag(1, "sa-1", "orders"),
    tag(2, "sa-2", "search", { valid_to: "2026-12-01" }),
    tag(3, "sa-3", "same"),
  ];
  const after = [
    tag(1, "sa-1", "orders", { valid_to: "2026-11-10" }),
    tag(4, "sa-1", "payments", { valid_from: "2026-11-10" }),
    tag(2, "sa-2", "payments", { valid_to: "2026-12-01" }),
    tag(3, "sa-3", "same"),
    tag(5, "sa-4", "payments"),
  ];
  expect(restoringOf({ before, after })).toEqual({
    values: [
      { ...place("sa-1"), tag_value: "orders" },
      { ...place("sa-2"), tag_value: "search", valid_to: "2026-12-01" },
    ],
    none: [place("sa-4")],
  });
  expect(restoringOf({ before, after: [] })?.values).toHaveLength(3);
});

test("what changed nothing is not undone, nor what had several values", () => {
  const several = [tag(1, "sa-1", "a", { valid_to: "2026-11-10" }), tag(2, "sa-1", "b", { valid_from: "2026-11-10" })];
  expect(restoringOf({ before: several, after: several })).toBeNull();
  expect(restoringOf({ before: several, after: [tag(2, "sa-1", "c")] })).toBeNull();
});

test("tags are as they were saved while they have the same values on the same days", () => {
  const saved = { before: [], after: [tag(1, "sa-1", "a"), tag(2, "sa-2", "a")] };
  expect(isAsSaved(saved, [tag(2, "sa-2", "a"), tag(1, "sa-1", "a")])).toBe(true);
  expect(isAsSaved(saved, [tag(1, "sa-1", "a"), tag(2, "sa-2", "b")])).toBe(false);
  expect(isAsSaved(saved, [tag(1, "sa-1", "a")])).toBe(false);
  // It was removed and written again.
  expect(isAsSaved(saved, [tag(1, "sa-1", "a"), tag(3, "sa-2", "a")])).toBe(false);
});
