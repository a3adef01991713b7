import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse, readTags } from "./csv";

const HEAD = "entity_type,entity_id,tag_key,tag_value\n";
const mistakes = (text: string, values = true) =>
  readTags(text, { values }).mistakes.map(({ line, what }) => `${line}: ${what}`);

const text = fc.string({
  minLength: 1,
  maxLength: 12,
  unit: fc.constantFrom("a", "ß", ",", ";", '"', "\n", "\r\n", " ", "'"),
});

test("what is written as RFC 4180 wants is read again", () => {
  const quoted = (each: string) => `"${each.replaceAll('"', '""')}"`;
  fc.assert(
    fc.property(fc.array(fc.array(text, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 6 }), (rows) => {
      const file = `a,b\r\n${rows.map((row) => row.map(quoted).join(",")).join("\r\n")}\r\n`;
      expect(parse(file).map((each) => each.fields)).toEqual([["a", "b"], ...rows]);
    }),
  );
});

describe("tags of a file", () => {
  test("are read in whatever order of columns, with semicolons, too", () => {
    const items = [{ entity_type: "identity", entity_id: "sa-1", tag_key: "team", tag_value: "pay, ments" }];
    expect(readTags(`${HEAD}identity,sa-1,team,"pay, ments"\r\n`, { values: true })).toEqual({ items, mistakes: [] });
    const other = "\ufefftag_value;tag_key;entity_id;entity_type;created_by\npay, ments;team;sa-1;identity;alice\n\n";
    expect(readTags(other, { values: true }).items).toEqual(items);
  });

  test("come back from the service's own files, whose formulas are defused", () => {
    const file = `${HEAD}resource,lkc-1,team,"'=1+1"\nresource,lkc-2,team,it's\n`;
    expect(readTags(file, { values: true }).items.map((each) => each.tag_value)).toEqual(["=1+1", "it's"]);
  });

  test("may have dates, and then a key several values", () => {
    const head = "entity_type,entity_id,tag_key,tag_value,valid_from,valid_to\n";
    const file = `${head}identity,a,team,x,,2026-03-01\nidentity,a,team,y,2026-03-01,\n`;
    expect(readTags(file, { values: true }).items).toEqual([
      { entity_type: "identity", entity_id: "a", tag_key: "team", tag_value: "x", valid_to: "2026-03-01" },
      { entity_type: "identity", entity_id: "a", tag_key: "team", tag_value: "y", valid_from: "2026-03-01" },
    ]);
    expect(mistakes(`${head}identity,a,team,x,soon,\nidentity,a,team,x,,\nidentity,a,team,y,,2026-01-01\n`)).toEqual([
      "2: valid_from is “soon”, and should be a date such as 2026-01-31",
      "4: the same tag as in line 3",
    ]);
  });

  test("need no values to be removed", () => {
    expect(mistakes("entity_type,entity_id,tag_key\nresource,lkc-1,team\n", false)).toEqual([]);
    expect(mistakes("entity_type,entity_id,tag_key\nresource,lkc-1,team\n")).toEqual([
      "1: the column tag_value is missing",
    ]);
  });

  test("have every mistake told by its line, and none is read then", () => {
    const file = `${HEAD}topic,a,team,x\nresource,,team,x\n"resource","a\nb",no key,x\nresource,a,team,\nresource,a,team\nresource,b,team,x\nresource,b,team,y\n`;
    expect(mistakes(file)).toEqual([
      "2: entity_type is “topic”, and should be resource or identity",
      "3: entity_id is missing",
      "4: tag_key is “no key”, and should be a letter or digit, then at most 62 of these or of _.:-",
      "6: tag_value is missing",
      "7: 3 fields instead of 4",
      "9: the same tag as in line 8",
    ]);
    expect(readTags(file, { values: true }).items).toEqual([]);
    expect(mistakes(`${HEAD}resource,${"x".repeat(513)},team,x\nresource,a,team,${"y".repeat(256)}\n`)).toEqual([
      "2: entity_id has more than 512 characters",
      "3: tag_value has more than 255 characters",
    ]);
  });

  test("need a first line with names, and something behind it", () => {
    expect(mistakes("")).toEqual(["1: the file is empty"]);
    expect(mistakes(HEAD)).toEqual(["2: there are no tags in the file"]);
    expect(mistakes("identity,sa-1,team,payments\n")).toContain("1: “sa-1” is not a column of tags");
    expect(mistakes(`${HEAD}resource,"a,team,x\n`)).toEqual(["2: a quotation mark is not closed"]);
  });
});
