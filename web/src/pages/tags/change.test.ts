import { expect, test } from "vitest";
import { beginningOn, type Change, type TagItem } from "./change";

const item = (entity_id: string, dates: Partial<TagItem> = {}): TagItem => ({
  entity_type: "identity",
  entity_id,
  tag_key: "team",
  tag_value: "payments",
  ...dates,
});

test("a change of tags begins on a day; what begins later stays, and what has ended by then is left out", () => {
  const items = [
    item("sa-1"),
    item("sa-2", { valid_from: "2026-09-01" }),
    item("sa-3", { valid_from: "2026-12-01" }),
    item("sa-4", { valid_to: "2026-10-15" }),
  ];
  const change: Change = { mode: "change", items, author: "alice" };
  expect(beginningOn("2026-11-01", change)).toEqual({
    ...change,
    items: [
      item("sa-1", { valid_from: "2026-11-01" }),
      item("sa-2", { valid_from: "2026-11-01" }),
      item("sa-3", { valid_from: "2026-12-01" }),
    ],
  });
});
