import { ratio, read, type Units, write } from "../money/money";
import { say } from "../words/say";
import { formats, grouped, MINUS, signs, ungrouped } from "./formats";

/** A space at which no line breaks. */
const SPACE = "\u00a0";
type Style = Intl.NumberFormatOptions;

/** What thousands, millions and more are written as on axes. */
const COMPACT: Record<string, string> = {
  K: say("K [thousands]"),
  M: say("M [millions]"),
  B: say("B [thousands of millions]"),
  T: say("T [millions of millions]"),
};

const known = new Map<string, Intl.NumberFormat>();

function format(currency: string, key: string, style: Style): Intl.NumberFormat {
  const name = `${currency} ${key}`;
  let found = known.get(name);
  if (!found) {
    // What rounds to zero has no sign.
    found = new Intl.NumberFormat("en-US", { style: "currency", currency, signDisplay: "negative", ...style });
    known.set(name, found);
  }
  return found;
}

/** The currencies whose minor unit has another number of decimal places than two, as the service has them: ISO 4217, list
 * one. `Intl` knows other ones, such as none for the rupiah of Indonesia. */
const PLACES: Record<number, string> = {
  0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
  3: "BHD IQD JOD KWD LYD OMR TND",
  4: "CLF UYW",
};

/** How many decimal places the minor unit of a currency has: the cents of dollars, none of yen. */
export function minorPlaces(currency: string): number {
  const found = Object.entries(PLACES).find(([, currencies]) => currencies.split(" ").includes(currency));
  return found ? Number(found[0]) : 2;
}

/** An amount with its currency, as the chosen formats have them. `Intl` takes a decimal string as it is, without a detour
 * over floating point. */
function shown(format: Intl.NumberFormat, amount: string | number): string {
  const { thousands: group, point: decimal } = signs();
  const own: Record<string, string> = { group, decimal, minusSign: MINUS };
  const parts = format.formatToParts(amount as `${number}`);
  const join = (some: typeof parts) =>
    some.map(({ type, value }) => own[type] ?? (type === "compact" ? (COMPACT[value] ?? value) : value)).join("");
  if (formats.currency === "before") return join(parts);
  const symbol = parts.filter(({ type }) => type === "currency");
  return join(parts.filter(({ type }) => type !== "currency" && type !== "literal")) + SPACE + join(symbol);
}

/** `$2,762.31`, `¥2,762`, or `2.762,31 $`: rounded to the minor unit. */
export function money(amount: Units | string, currency: string): string {
  return shown(format(currency, "cents", cents(currency)), typeof amount === "string" ? amount : write(amount));
}

function cents(currency: string): Style {
  const places = minorPlaces(currency);
  return { minimumFractionDigits: places, maximumFractionDigits: places };
}

/** `$62,082`: for what is not known to the cent. */
export function about(amount: Units, currency: string): string {
  return shown(format(currency, "whole", { maximumFractionDigits: 0 }), write(amount));
}

/** `$61.9K`: for axes. */
export function short(amount: Units | number, currency: string): string {
  const style: Style = { notation: "compact", maximumSignificantDigits: 3 };
  return shown(format(currency, "short", style), typeof amount === "number" ? amount : write(amount));
}

/** `USD 2762.306796452111`, or `2762,306796452111 USD`: what a rounded figure stands for, to the last digit, with nothing
 * between its thousands. */
export function exact(amount: Units | string, currency: string): string {
  const text = ungrouped(typeof amount === "string" ? write(read(amount)) : write(amount));
  return formats.currency === "before" ? `${currency} ${text}` : `${text} ${currency}`;
}

/** `+$449.50`, `−$86.63`, and `$0.00` for what rounds to it. */
export function signed(amount: Units, currency: string): string {
  return shown(format(currency, "signed", { ...cents(currency), signDisplay: "exceptZero" }), write(amount));
}

/** The digits up to the minor unit, and those behind it: `1,234.56` and `7`; of yen, `1,234` and `.567`. */
export function split(amount: string, currency: string): [string, string] {
  const places = minorPlaces(currency);
  const [whole = "0", fraction = ""] = write(read(amount)).split(".");
  const digits = fraction.replace(/0+$/, "").padEnd(places, "0");
  const more = digits.slice(places);
  const { point } = signs();
  if (places === 0) return [grouped(whole), more && point + more];
  return [grouped(whole) + point + digits.slice(0, places), more];
}

export function percent(share: number | null, digits = 1): string {
  if (share === null) return "–";
  const text = (share * 100).toFixed(digits);
  return say("{number}%", { number: ungrouped(Number(text) === 0 ? text.replace("-", "") : text) });
}

export interface Change {
  direction: "up" | "down" | "same" | "new";
  /** `+2.2%`, or words where there is no percentage. */
  text: string;
  amount: Units;
}

/** What an amount is against an earlier one. Null if there is none to compare with. */
export function change(amount: Units, previous: Units | null): Change | null {
  if (previous === null) return null;
  const difference = amount - previous;
  if (difference === 0n) return { direction: "same", text: say("no change"), amount: 0n };
  const direction = difference > 0n ? "up" : "down";
  const size = previous < 0n ? -previous : previous;
  const share = ratio(difference, size);
  if (share === null) return { direction: "new", text: say("new [an amount]"), amount: difference };
  if (Math.abs(share) < 0.0005) return { direction: "same", text: say("no change"), amount: difference };
  const text = Math.abs(share) > 9.995 ? `${difference > 0n ? "+" : MINUS}>${percent(9.99, 0)}` : percent(share);
  return { direction, text: difference > 0n && !text.startsWith("+") ? `+${text}` : text, amount: difference };
}
