// Tests of the service use this module without a bundler: Node needs the endings of what it imports.
import { full, month } from "../format/days.ts";
import { formats, grouped } from "../format/formats.ts";
import { service } from "./catalogue.ts";
import { language } from "./language.ts";
import { filled, PLACE } from "./say.ts";

const NUMBER = String.raw`[+-]?\d[\d,]*(?:\.\d+)?`;
const DAY = String.raw`\d{4}-\d{2}-\d{2}|\d{1,2} [A-Z][a-z]+ \d{4}`;
const AMOUNT = `${NUMBER} [A-Z]{3}|nothing`;

/** What a value in a sentence looks like, by its name; other values can be any text, also a part of a sentence. */
const KINDS: Readonly<Record<string, string>> = {
  amount: AMOUNT,
  usual: AMOUNT,
  change: String.raw`[+-]\d[\d,]*(?:\.\d+)?(?: [A-Z]{3})?`,
  most: String.raw`[+-]\d[\d,]*(?:\.\d+)?`,
  number: NUMBER,
  whole: NUMBER,
  margin: NUMBER,
  count: `${NUMBER}|several`,
  percent: `${NUMBER} ?%`,
  code: "[A-Z][A-Z0-9_]*",
  day: DAY,
  time: String.raw`\d{2}:\d{2}`,
};

/** What is joined by a semicolon or `and`: only of parts that are known, since any text may have these. */
const JOINED = new Set(["reason", "more"]);

/** A sentence of the service: how it is recognised, and what it is called in the reader's language. */
interface Shape {
  pattern: RegExp;
  /** The longest text between its values: what does not have it, is another sentence. */
  needs: string;
  text: string;
}

let known: readonly Shape[] | undefined;
const found = new Map<string, string | null>();

/** A sentence of the service in the reader's language, with numbers and days in the reader's formats.
 *
 * The service says everything in English, also in files that were written long ago. It is recognised by its shape, as
 * `{who} is charged {amount}`, and the parts of it in the same way. What is not recognised, such as the message of
 * another system, stays as it is.
 */
export function reworded(sentence: string): string {
  return language === "en" ? formatted(sentence) : (translated(sentence) ?? sentence);
}

function translated(text: string): string | null {
  let result = found.get(text);
  if (result === undefined) {
    result = bySentence(text) ?? byShape(text);
    found.set(text, result);
  }
  return result;
}

/** Several sentences, if each of them is known. */
function bySentence(text: string): string | null {
  const sentences = text.split(/(?<=\.) (?=[\p{Lu}\d])/u);
  if (sentences.length < 2) return null;
  const each = sentences.map(byShape);
  return each.every((one) => one !== null) ? each.join(" ") : null;
}

function byShape(text: string): string | null {
  known ??= Object.entries(service)
    .map(shapeOf)
    .sort(moreFirst)
    .map(([shape]) => shape);
  for (const { pattern, needs, text: called } of known) {
    const match = text.includes(needs) && pattern.exec(text);
    if (!match) continue;
    const groups = Object.entries(match.groups ?? {});
    if (groups.some(([name, value]) => JOINED.has(name) && translated(value) === null)) continue;
    const values = groups.map(([name, value]) => [name, valued(value)] as const);
    return filled(isUpper(text) ? capital(called) : called, Object.fromEntries(values));
  }
  return null;
}

/** A shape, and how many letters it has beside its values: the more of them, the less else it can be. */
function shapeOf([english, text]: [string, string]): [Shape, number] {
  const pieces = english.split(PLACE);
  const texts = pieces.filter((_, at) => at % 4 === 0);
  let pattern = "";
  const named = new Set<string>();
  for (let at = 0; at < pieces.length; at += 4) {
    pattern += escaped(pieces[at] ?? "");
    const [name, one, many] = pieces.slice(at + 1, at + 4);
    if (name === undefined) continue;
    if (one !== undefined) pattern += `(?:${escaped(one)}|${escaped(many ?? "")})`;
    else pattern += named.has(name) ? `\\k<${name}>` : `(?<${name}>${KINDS[name] ?? ".+?"})`;
    named.add(name);
  }
  const needs = texts.reduce((longest, each) => (each.length > longest.length ? each : longest), "");
  return [{ pattern: new RegExp(`^${pattern}$`, "s"), needs, text }, texts.join("").length];
}

const moreFirst = ([, a]: readonly [Shape, number], [, b]: readonly [Shape, number]) => b - a;
const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** A reason can be a sentence of its own, which begins with a capital, unless with a name. */
const isUpper = (text: string) => /^\p{Lu}/u.test(text);
const capital = (text: string) => text.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());

/** A value of a sentence: a number, a day, or words that may be a part of one. */
function valued(value: string): string | number {
  if (/^\d[\d,]*$/.test(value)) return Number(value.replaceAll(",", ""));
  return VALUE.test(value) ? formatted(value) : (translated(value) ?? value);
}

const MONTH = new Intl.DateTimeFormat("en", { month: "long", timeZone: "UTC" });
const MONTHS = Array.from({ length: 12 }, (_, month) => MONTH.format(Date.UTC(2000, month)));
const VALUE = new RegExp(`^(?:${NUMBER}(?: [A-Z]{3}| ?%)?|${DAY}|(?:${MONTHS.join("|")}) \\d{4})$`);
const ENGLISH_DAY = new RegExp(`(?<![\\w-])(?:(\\d{1,2}) )?(${MONTHS.join("|")}) (\\d{4})(?![\\w-])`, "g");
const ISO_DAY = /(?<![\w-])\d{4}-\d{2}-\d{2}(?![\w-])/g;
/** A number that stands alone: not a part of a name, of a version, or of an address. */
const ALONE = /(?<![\w.,:/-])[+-]?\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w:/-]|[.,]\d)/g;

/** What a sentence is with numbers and days in the reader's formats. Those of the service are usual in English. */
function formatted(text: string): string {
  const isUsual = language === "en" && formats.dates === "14 November 2026";
  const dated = isUsual
    ? text
    : text.replace(ENGLISH_DAY, (_, day, name, year) => dayOf(day, name, year)).replace(ISO_DAY, (day) => full(day));
  if (formats.numbers === "1,234.56") return dated;
  return dated.replace(ALONE, (number) => grouped(number.replaceAll(",", "")));
}

function dayOf(day: string | undefined, name: string, year: string): string {
  const iso = `${year}-${String(MONTHS.indexOf(name) + 1).padStart(2, "0")}-${(day ?? "1").padStart(2, "0")}`;
  return day === undefined ? month(iso) : full(iso);
}
