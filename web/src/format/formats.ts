import type { StatementFormat } from "../api/shapes";
import { remember, remembered } from "../app/memory.ts";
import { type Language, language } from "../words/language.ts";

/** How this page writes numbers, days, and the currency of an amount: the choices that a tenant has for its statements. */
export type Formats = StatementFormat;

/** What can be chosen. */
export const CHOICES: { [Name in keyof Formats]: readonly Formats[Name][] } = {
  numbers: ["1,234.56", "1.234,56", "1 234,56"],
  dates: ["14 November 2026", "14.11.2026", "2026-11-14"],
  currency: ["before", "after"],
};

/** What is usual in a language. */
const USUAL: Record<Language, Formats> = {
  en: { numbers: "1,234.56", dates: "14 November 2026", currency: "before" },
  de: { numbers: "1.234,56", dates: "14.11.2026", currency: "after" },
};

/** What this browser remembers of a choice; the usual one if that is nothing that can be chosen. */
function remembers<Name extends keyof Formats>(name: Name): Formats[Name] {
  const found = remembered(name);
  return CHOICES[name].find((each) => each === found) ?? USUAL[language][name];
}

/** What it remembers of all of them. */
export function chosen(): Formats {
  return { numbers: remembers("numbers"), dates: remembers("dates"), currency: remembers("currency") };
}

/** Read once: the page is loaded again when another one is chosen, so that everything on it is written alike. */
export const formats = chosen();

/** Let this browser remember a choice, for when the page is loaded again. */
export function choose(name: keyof Formats, value: string): void {
  remember(name, value === USUAL[language][name] ? null : value);
}

interface Signs {
  thousands: string;
  point: string;
}

/** The narrow space is one at which no line breaks, as in the service's documents. */
const SIGNS: Record<Formats["numbers"], Signs> = {
  "1,234.56": { thousands: ",", point: "." },
  "1.234,56": { thousands: ".", point: "," },
  "1 234,56": { thousands: "\u202f", point: "," },
};
export const MINUS = "\u2212";

/** What stands between thousands, and before decimals. */
export function signs(): Signs {
  return SIGNS[formats.numbers];
}

/** A number with every digit that it has: `−64448.933485032`. */
export function ungrouped(number: string): string {
  return number.replace(".", signs().point).replace("-", MINUS);
}

/** A number with its thousands apart, and every digit that it has: `64,448.933485032`. */
export function grouped(number: string | number): string {
  const [whole = "", fraction] = String(number).split(".");
  const { thousands, point } = signs();
  return whole.replace(/\B(?=(\d{3})+(?!\d))/g, thousands).replace("-", MINUS) + (fraction ? point + fraction : "");
}
