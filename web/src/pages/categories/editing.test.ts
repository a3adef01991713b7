import { describe, expect, test } from "vitest";
import type { CategoryDocument } from "./document";
import { begin, type Editing, type Event, edit, isChanged } from "./editing";

const MINE: CategoryDocument = { rules: [{ match: { identity: ["sa-1"] }, assign: "mine" }] };
const OTHER: CategoryDocument = { rules: [{ match: { identity: ["sa-2"] }, assign: "other" }] };
const THEIRS = { key: "team", document: { default: "theirs" }, etag: '"2"', version: 2 };
const START = begin({ key: "team", document: {}, etag: '"1"', version: 1 });
const CONFLICT = new Error("412");

const through = (state: Editing, ...events: Event[]): Editing => events.reduce(edit, state);
const previewed = through(START, { type: "change", document: MINE }, { type: "preview" });
const refused = through(previewed, { type: "save" }, { type: "failed", error: CONFLICT });

describe("an edit of a cost category", () => {
  test("is previewed before it is saved", () => {
    expect(START.stage).toBe("editing");
    expect(edit(START, { type: "save" })).toBe(START);
    expect(previewed).toMatchObject({ stage: "previewing", document: MINE });
    expect(edit(previewed, { type: "save" }).stage).toBe("saving");
  });

  test.each<Event>([
    { type: "name", key: "other" },
    { type: "change", document: OTHER },
    { type: "type", text: "{}" },
  ])("needs another preview after $type", (event) => {
    expect(edit(previewed, event)).toMatchObject({ stage: "editing", refusal: null });
    expect(edit(refused, event)).toMatchObject({ stage: "editing", refusal: null });
  });

  test("a change closes the form of the rule", () => {
    const open = edit(previewed, { type: "open", open: "new" });
    expect(open).toMatchObject({ stage: "previewing", open: "new" });
    expect(edit(open, { type: "change", document: OTHER })).toMatchObject({ open: null, document: OTHER });
    expect(edit(open, { type: "as text" })).toMatchObject({ open: null, document: MINE });
  });

  test("has something to lose from the first change on, and nothing when that is taken back", () => {
    const changed = edit(START, { type: "change", document: MINE });
    const cases = [START, edit(START, { type: "as text" }), edit(changed, { type: "change", document: {} })];
    expect(cases.map(isChanged)).toEqual([false, false, false]);
    const open = edit(START, { type: "open", open: "new" });
    const typed = through(START, { type: "as text" }, { type: "type", text: "{" });
    const loaded = through(refused, { type: "load" }, { type: "loaded", theirs: THEIRS });
    expect([changed, open, typed, loaded, edit(START, { type: "name", key: "other" })].map(isChanged)).toEqual([
      true,
      true,
      true,
      true,
      true,
    ]);
  });

  test("is a text, and rules again", () => {
    const text = edit(previewed, { type: "as text" });
    expect(JSON.parse(text.text ?? "")).toEqual(MINE);
    const typed = edit(text, { type: "type", text: JSON.stringify(OTHER) });
    expect(edit(typed, { type: "as text" })).toBe(typed);
    expect(edit(typed, { type: "as rules" })).toMatchObject({ stage: "editing", text: null, document: OTHER });
    expect(edit(typed, { type: "preview" })).toMatchObject({ stage: "previewing", document: OTHER });
  });

  test("a text that is no document stays, with what is wrong, until it is typed again", () => {
    const typed = through(START, { type: "as text" }, { type: "type", text: "{" });
    for (const type of ["preview", "as rules"] as const) {
      const wrong = edit(typed, { type });
      expect(wrong).toMatchObject({ stage: "editing", text: "{", document: {} });
      expect(wrong.wrong).toMatch(/not JSON/);
      expect(edit(wrong, { type: "type", text: "{}" }).wrong).toBeNull();
    }
    const unlisted = through(typed, { type: "type", text: '{"rules": [{}]}' }, { type: "as rules" });
    expect(unlisted.wrong).toMatch(/list of objects/);
  });

  test("is refused, and saved at another try", () => {
    expect(refused).toMatchObject({ stage: "refused", document: MINE, refusal: CONFLICT });
    expect(edit(refused, { type: "save" })).toMatchObject({ stage: "saving", refusal: null });
  });

  test("a refusal of what was edited meanwhile is told, and needs another preview", () => {
    const meanwhile = through(
      previewed,
      { type: "save" },
      { type: "change", document: OTHER },
      { type: "failed", error: CONFLICT },
    );
    expect(meanwhile).toMatchObject({ stage: "editing", document: OTHER, refusal: CONFLICT });
  });

  test("goes on with the version of somebody else, and keeps its own to swap with", () => {
    const loading = edit(refused, { type: "load" });
    expect(loading).toMatchObject({ stage: "loading", refusal: CONFLICT });
    const loaded = edit(loading, { type: "loaded", theirs: THEIRS });
    expect(loaded).toMatchObject({ stage: "editing", base: THEIRS, document: THEIRS.document, kept: MINE });
    expect(loaded.refusal).toBeNull();
    const own = edit(loaded, { type: "swap" });
    expect(own).toMatchObject({ base: THEIRS, document: MINE, kept: THEIRS.document });
    const typed = through(own, { type: "as text" }, { type: "type", text: JSON.stringify(OTHER) }, { type: "swap" });
    expect(typed).toMatchObject({ document: THEIRS.document, kept: OTHER });
    expect(JSON.parse(typed.text ?? "")).toEqual(THEIRS.document);
  });

  test("a version that cannot be loaded leaves everything as it was", () => {
    const lost = through(refused, { type: "load" }, { type: "failed", error: "offline" });
    expect(lost).toEqual({ ...refused, lost: "offline" });
    expect(edit(lost, { type: "load" })).toMatchObject({ stage: "loading", lost: null });
    expect(edit(previewed, { type: "load" })).toBe(previewed);
    expect(edit(previewed, { type: "swap" })).toBe(previewed);
  });
});
