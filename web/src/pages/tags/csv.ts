import { isDay } from "../../calendar/days";
import { say } from "../../words/say";
import type { TagItem } from "./change";

/** What is wrong in a line of a file; lines count from 1. */
export interface Mistake {
  line: number;
  what: string;
}

interface Record {
  line: number;
  fields: string[];
}

/** The columns of a file of tags. */
export const COLUMNS = ["entity_type", "entity_id", "tag_key", "tag_value"] as const;
/** Columns that may be there: days, or nothing. */
const DATES = ["valid_from", "valid_to"] as const;
/** Columns of the service's own files that a change of tags has no use for. */
const UNUSED = ["tag_id", "tenant_id", "created_by", "created_at"];
const KEY = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$/;
const [MOST_ID, MOST_VALUE] = [512, 255];
/** The apostrophes that the service's files have before what a spreadsheet would take for a formula. */
const GUARD = /(^|[;\t\r\n])'(?=[=+\-@'"\t\r\n])/g;

/** Read the tags of a CSV file: all of them, or every mistake. To remove tags, no values are needed. */
export function readTags(text: string, { values }: { values: boolean }): { items: TagItem[]; mistakes: Mistake[] } {
  const [head, ...records] = parse(text.replace(/^\ufeff/, ""));
  if (!head) return { items: [], mistakes: [{ line: 1, what: say("the file is empty") }] };
  if (head.line < 0) return { items: [], mistakes: [unclosed(head)] };
  const needed = COLUMNS.filter((each) => values || each !== "tag_value");
  const names = head.fields.map((each) => each.trim());
  const mistakes = headMistakes(names, needed);
  if (mistakes.length) return { items: [], mistakes };
  if (records.length === 0) return { items: [], mistakes: [{ line: 2, what: say("there are no tags in the file") }] };
  const known = new Map<string, number>();
  const items: TagItem[] = [];
  for (const record of records) {
    const found = record.line < 0 ? unclosed(record) : itemOf(record, names, values);
    if ("what" in found) mistakes.push(found);
    else {
      const place = JSON.stringify([found.entity_type, found.entity_id, found.tag_key, found.valid_from]);
      const other = known.get(place);
      if (other !== undefined)
        mistakes.push({ line: record.line, what: say("the same tag as in line {line}", { line: `${other}` }) });
      else known.set(place, record.line);
      items.push(found);
    }
  }
  return { items: mistakes.length ? [] : items, mistakes };
}

function unclosed({ line }: Record): Mistake {
  return { line: -line, what: say("a quotation mark is not closed") };
}

function headMistakes(names: readonly string[], needed: readonly string[]): Mistake[] {
  const missing = needed.filter((each) => !names.includes(each));
  const unknown = names.filter((each) => ![...COLUMNS, ...DATES, ...UNUSED].some((column) => column === each));
  const twice = names.filter((each, n) => names.indexOf(each) !== n);
  return [
    ...missing.map((column) => say("the column {column} is missing", { column })),
    ...unknown.map((column) => say("“{column}” is not a column of tags", { column })),
    ...twice.map((column) => say("the column {column} is there twice", { column })),
  ].map((what) => ({ line: 1, what }));
}

function itemOf({ line, fields }: Record, names: readonly string[], values: boolean): TagItem | Mistake {
  if (fields.length !== names.length)
    return { line, what: say("{some} fields instead of {all}", { some: fields.length, all: names.length }) };
  const field = (name: string) => (fields[names.indexOf(name)] ?? "").replace(GUARD, "$1");
  const entity_type = field("entity_type").trim();
  const entity_id = field("entity_id").trim();
  const tag_key = field("tag_key").trim();
  const tag_value = values ? field("tag_value").trim() : "";
  const dates = DATES.map((name) => [name, field(name).trim()] as const).filter(([, day]) => day);
  if (entity_type !== "resource" && entity_type !== "identity")
    return { line, what: say("entity_type is “{text}”, and should be resource or identity", { text: entity_type }) };
  if (!entity_id) return { line, what: say("entity_id is missing") };
  if (entity_id.length > MOST_ID) return { line, what: say("entity_id has more than {n} characters", { n: MOST_ID }) };
  if (!KEY.test(tag_key))
    return {
      line,
      what: say("tag_key is “{text}”, and should be a letter or digit, then at most 62 of these or of _.:-", {
        text: tag_key,
      }),
    };
  if (values && !tag_value) return { line, what: say("tag_value is missing") };
  if (tag_value.length > MOST_VALUE)
    return { line, what: say("tag_value has more than {n} characters", { n: MOST_VALUE }) };
  for (const [name, day] of dates)
    if (!isDay(day))
      return {
        line,
        what: say("{column} is “{text}”, and should be a date such as 2026-01-31", { column: name, text: day }),
      };
  return { entity_type, entity_id, tag_key, tag_value, ...Object.fromEntries(dates) };
}

/** Read CSV (RFC 4180) whose separator is a comma, or a semicolon where the first line has no comma. Empty lines are
 * left out. A record that is not closed has its line as a negative number. */
export function parse(text: string): Record[] {
  const first = text.slice(0, Math.max(0, text.search(/[\r\n]|$/)));
  const separator = first.includes(",") || !first.includes(";") ? "," : ";";
  const records: Record[] = [];
  let line = 1;
  let record: Record = { line, fields: [] };
  let field = "";
  let quoted = false;
  const end = () => {
    record.fields.push(field);
    field = "";
  };
  const finish = () => {
    end();
    if (record.fields.length > 1 || record.fields[0]) records.push(record);
  };
  for (let at = 0; at < text.length; at++) {
    const mark = text.charAt(at);
    if (mark === "\n") line++;
    if (quoted) {
      if (mark !== '"') field += mark;
      else if (text.charAt(at + 1) === '"') field += text.charAt(at++);
      else quoted = false;
    } else if (mark === '"' && field === "") quoted = true;
    else if (mark === separator) end();
    else if (mark === "\n") {
      finish();
      record = { line, fields: [] };
    } else if (mark !== "\r") field += mark;
  }
  if (quoted) record.line = -record.line;
  finish();
  return records;
}
