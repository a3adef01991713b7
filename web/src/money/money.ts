/** Exact money: a decimal string of the API as a whole number of 10⁻³², and back: amounts have twelve decimals, twelve more
 * where values of cost categories hand on cost, and eight more in another currency. `Number` only ever becomes pixels. */
export type Units = bigint;

const DIGITS = 32;
const ONE = 10n ** BigInt(DIGITS);
const AMOUNT = /^(-?)(\d+)(?:\.(\d+))?$/;

/** Read a decimal string, such as `"-12.34"`. Throws if it is none, or has more digits than the service ever sends. */
export function read(text: string): Units {
  const found = AMOUNT.exec(text);
  if (!found) throw new RangeError(`"${text}" is not an amount`);
  const [, sign, whole = "", rest = ""] = found;
  const fraction = rest.replace(/0+$/, "");
  if (fraction.length > DIGITS) throw new RangeError(`"${text}" has more than ${DIGITS} decimals`);
  const units = BigInt(whole) * ONE + BigInt(fraction.padEnd(DIGITS, "0"));
  return sign ? -units : units;
}

/** Write an amount with two decimals, or as many more as it has. */
export function write(units: Units): string {
  const size = units < 0n ? -units : units;
  const fraction = (size % ONE).toString().padStart(DIGITS, "0").replace(/0+$/, "").padEnd(2, "0");
  return `${units < 0n ? "-" : ""}${size / ONE}.${fraction}`;
}

/** What stands at a place of a list that has it. Throws where there is nothing: no figure is made up for it. */
export function at<T>(list: readonly T[], place: number): T {
  const found = list[place];
  if (found === undefined) throw new RangeError(`there is nothing at ${place} of ${list.length}`);
  return found;
}

export function sum(amounts: Iterable<Units>): Units {
  let total = 0n;
  for (const each of amounts) total += each;
  return total;
}

/** The part that `part` is of `whole`, from 0 to 1, to nine digits; null of nothing. For shares and pixels. */
export function ratio(part: Units, whole: Units): number | null {
  return whole === 0n ? null : Number((part * 1_000_000_000n) / whole) / 1e9;
}

/** For the place of a pixel, and for nothing else. */
export function pixels(units: Units): number {
  return Number(units) / Number(ONE);
}

export function larger(a: Units, b: Units): number {
  return a < b ? 1 : a > b ? -1 : 0;
}
