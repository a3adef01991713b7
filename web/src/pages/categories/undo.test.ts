import { expect, test } from "vitest";
import type { Category } from "../../api/shapes";
import { lastOf, refusalOf, savedOf } from "./undo";

const info = { key: "team", document: {}, warnings: [], who: "bob", at: "2026-11-16T10:00:00Z", reason: null };
const version = (number: number, etag = `"${number}-a"`) => ({
  body: { ...info, version: number } satisfies Category,
  etag,
});
const SAVED = { version: 4, etag: '"4-a"', replaced: 3 };

test("what saving makes can be undone; the same document again makes no version, and is somebody else's", () => {
  expect(savedOf(version(3), version(4))).toEqual(SAVED);
  expect(savedOf(version(3), version(3))).toBeNull();
});

test("it can be undone while it is the present version, and not after somebody has changed it", () => {
  expect(refusalOf(SAVED, version(4))).toBeNull();
  const refused = refusalOf(SAVED, version(5));
  expect(refused?.title).toBe("Nothing was undone");
  expect(refused?.detail).toMatch(/^Version 5 was saved by bob, .*2026, 10:00 UTC, after your version 4\./);
  // After a restore, another version can have the same number.
  expect(refusalOf(SAVED, version(4, '"4-b"'))).not.toBeNull();
});

test("the last version in the history can be undone, if there was one before it", () => {
  const past = (number: number, removed = false) => ({ version: number, removed });
  expect(lastOf(version(4), [past(4), past(3), past(2)])).toEqual(SAVED);
  expect(lastOf(version(1), [past(1)])).toBeNull();
  expect(lastOf(version(4), [past(4), past(3, true)])).toBeNull();
  // The history is newer than the category that is shown, or older.
  expect(lastOf(version(4), [past(5), past(4)])).toBeNull();
  expect(lastOf(version(4), [past(3), past(2)])).toBeNull();
});
