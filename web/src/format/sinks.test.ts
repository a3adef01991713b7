import { expect, test } from "vitest";
import { eventKind, sinkType } from "./sinks";

test("sinks and what they are told of have words, and what is not known keeps its code", async () => {
  const { default: document } = await import("../../openapi.json");
  const { type, kinds } = document.components.schemas.SinkItem.properties;
  for (const each of type.enum) expect(sinkType(each)).not.toBe(each);
  const all = kinds.anyOf.flatMap((each) => each.items?.enum ?? []);
  expect(all.length).toBeGreaterThan(20);
  for (const each of all) expect(eventKind(each)).not.toMatch(/\./);
  expect([sinkType("pager"), eventKind("budget.moved")]).toEqual(["pager", "budget.moved"]);
});
