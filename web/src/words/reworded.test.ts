import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { PLACE } from "./say";
import german from "./service.de.json";

const SERVICE = join(import.meta.dirname, "../../../src/chargeback");
const CATALOGUE: Readonly<Record<string, string>> = german;

/** The page's function as in a browser that remembers these choices. */
async function readBy(choices: Readonly<Record<string, string>>): Promise<(sentence: string) => string> {
  vi.stubGlobal("localStorage", { getItem: (name: string) => choices[name.replace("chargeback.", "")] ?? null });
  vi.resetModules();
  await (await import("./catalogue")).loadWords();
  return (await import("./reworded")).reworded;
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

/** The texts between the values, and the names of the values. */
function apart(text: string): { texts: string[]; names: string[] } {
  const pieces = text.split(PLACE);
  return {
    texts: pieces.filter((_, at) => at % 4 === 0),
    names: [...new Set(pieces.filter((_, at) => at % 4 === 1))].sort(),
  };
}

test("the service says each of these sentences", () => {
  const names = readdirSync(SERVICE, { recursive: true, encoding: "utf8" }).filter((each) => each.endsWith(".py"));
  // A text that goes on in the next line is one text.
  const code = names.map((each) => readFileSync(join(SERVICE, each), "utf8").replace(/"\s*\n\s*f?"/g, "")).join("\n");
  const said = code.toLowerCase();
  const pieces = (text: string) => text.toLowerCase().match(/[\p{L}\p{N}'`_⁻]+/gu) ?? [];
  const words = new Set(pieces(code));
  const unsaid = Object.keys(CATALOGUE).filter(
    (text) =>
      !apart(text).texts.every(
        (each) => said.includes(each.toLowerCase()) || pieces(each).every((word) => words.has(word)),
      ),
  );
  expect(unsaid).toEqual([]);
  expect(Object.keys(CATALOGUE)).toEqual(Object.keys(CATALOGUE).sort());
});

test("every translation has the same values in it", () => {
  const isSame = ([text, translated]: [string, string]) =>
    String(apart(text).names) === String(apart(translated).names) && translated.trim() === translated && translated;
  expect(Object.entries(CATALOGUE).filter((each) => !isSame(each))).toEqual([]);
});

test("sentences are in the reader's words and formats", async () => {
  const reworded = await readBy({ language: "de" });
  expect(
    reworded(
      "orders-service wrote 12.3 of 1,045.6 GB on orders-prod on 4 November 2026. " +
        "70 % of the KAFKA_NETWORK_WRITE line of 1,234.57 USD follows written bytes: 370.37 USD for orders-service.",
    ),
  ).toBe(
    "orders-service hat am 04.11.2026 auf orders-prod 12,3 von 1.045,6 GB geschrieben. " +
      "70 % der Zeile KAFKA_NETWORK_WRITE über 1.234,57 USD, aufgeteilt nach Bytes (geschrieben): 370,37 USD für orders-service.",
  );
  expect(
    reworded(
      "+412.10 USD: +380.02 above all because larger quantities of KAFKA_NETWORK_WRITE on orders-prod were billed, " +
        "for which payments pays 310.00 more (+350.02); +32.08 because the price of KAFKA_NUM_CKUS on orders-prod rose.",
    ),
  ).toBe(
    "+412,10 USD: +380,02, vor allem: größere Mengen von KAFKA_NETWORK_WRITE auf orders-prod wurden berechnet, " +
      "wofür payments 310,00 mehr trägt (+350,02); +32,08, denn der Preis von KAFKA_NUM_CKUS auf orders-prod ist gestiegen.",
  );
  expect(
    reworded(
      "billing was charged 64.20 USD for kafka on 2026-11-14, 6.7 times the usual 9.58 USD; 3 days in a row, " +
        "after which it is taken for the new level; mostly KAFKA_NETWORK_READ of lkc-1",
    ),
  ).toBe(
    "billing trägt am 14.11.2026 für kafka 64,20 USD, das 6,7-Fache der üblichen 9,58 USD; 3 Tage nacheinander; " +
      "danach gilt es als neues Niveau; das meiste davon KAFKA_NETWORK_READ von lkc-1",
  );
  expect(
    reworded("October 2026 costs 3.00 USD less than was booked: the bill of 1 day changed, and tags were changed."),
  ).toBe(
    "Oktober 2026 kostet 3,00 USD weniger als gebucht: die Rechnung von 1 Tag hat sich geändert, und Labels wurden geändert.",
  );
  expect(reworded("metrics unavailable: HTTP 401: bad key")).toBe("Messwerte nicht verfügbar: HTTP 401: bad key");
});

test("what the service does not say stays as it is", async () => {
  const reworded = await readBy({ language: "de" });
  for (const text of [
    "",
    "HTTP 503: upstream connect error. Try 1.5 later.",
    "KeyError: 'a'",
    "bad key, and no other; none",
  ])
    expect(reworded(text)).toBe(text);
});

test("in English, numbers and days are in the reader's formats, names as they are", async () => {
  const sentence = "v1.5-orders was charged 1,064.20 USD on 2026-11-14, 63% more; backup-2026-11-14 on 4 November 2026";
  expect((await readBy({}))(sentence)).toBe(sentence);
  expect((await readBy({ numbers: "1.234,56" }))(sentence)).toBe(sentence.replace("1,064.20", "1.064,20"));
  expect((await readBy({ dates: "14.11.2026" }))(sentence)).toBe(
    "v1.5-orders was charged 1,064.20 USD on 14.11.2026, 63% more; backup-2026-11-14 on 04.11.2026",
  );
});
