import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createElement, render } from "preact/compat";
import ts from "typescript";
import { afterEach, expect, test, vi } from "vitest";
import german from "./de.json";
import { say } from "./say";

const SOURCE = join(import.meta.dirname, "..");
const CATALOGUE: Readonly<Record<string, string>> = german;
/** What is called so in every language: brands, and what a browser calls keys and headers. */
const NAMES =
  /^(?:Kafka|Flink|Tableflow|English|Deutsch|Arrow(?:Up|Down|Left|Right)|Home|End|Page(?:Up|Down)|Enter|Escape|Tab|[A-Z]\w*-[A-Z][\w-]*)$/;
const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt", "label"];

interface Found {
  where: string;
  text: string;
}

/** Every text that is said, and every other one that a reader would see. */
function readSource(): { said: Found[]; plain: Found[] } {
  const said: Found[] = [];
  const plain: Found[] = [];
  for (const name of readdirSync(SOURCE, { recursive: true, encoding: "utf8" }))
    if (/\.tsx?$/.test(name) && !/\.test\.ts$|schema\.d\.ts$/.test(name)) {
      const file = ts.createSourceFile(name, readFileSync(join(SOURCE, name), "utf8"), ts.ScriptTarget.Latest, true);
      const visit = (node: ts.Node) => {
        const line = file.getLineAndCharacterOfPosition(node.getStart()).line + 1;
        const add = (list: Found[], text: string) => list.push({ where: `${name}:${line}`, text });
        if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === "say") {
          const [first, ...others] = node.arguments;
          if (first && ts.isStringLiteralLike(first)) add(said, first.text);
          else add(plain, `say(${first?.getText()})`);
          for (const each of others) visit(each);
          return;
        }
        if (isSeen(node)) add(plain, node.text.trim());
        ts.forEachChild(node, visit);
      };
      visit(file);
    }
  return { said, plain };
}

/** Whether a node is a text for readers: one between elements, one in an attribute that is read, or a sentence. */
function isSeen(node: ts.Node): node is ts.JsxText | ts.StringLiteralLike {
  if (ts.isJsxText(node)) return /\p{L}/u.test(node.text);
  if (!ts.isStringLiteralLike(node) || ts.isLiteralTypeNode(node.parent)) return false;
  if (ts.isJsxAttribute(node.parent))
    return ATTRIBUTES.includes(node.parent.name.getText()) && /\p{L}/u.test(node.text);
  return /^\p{Lu}\p{Ll}+(?:$|[ ,:])/u.test(node.text) && !NAMES.test(node.text);
}

/** The names of the values that a text has a place for. */
function places(text: string): string[] {
  return [...new Set([...text.matchAll(/\{([^{}|]+)/g)].map(([, name]) => name ?? ""))].sort();
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

test("every text of the page is in the catalogue, and nothing else", () => {
  const { said, plain } = readSource();
  expect(plain).toEqual([]);
  expect(said.filter(({ text }) => !Object.hasOwn(CATALOGUE, text))).toEqual([]);
  const texts = new Set(said.map(({ text }) => text));
  expect(Object.keys(CATALOGUE).filter((text) => !texts.has(text))).toEqual([]);
  expect(Object.keys(CATALOGUE)).toEqual(Object.keys(CATALOGUE).sort());
}, 20_000);

test("every translation has the same values in it, and is whole", () => {
  const isSame = ([text, translated]: [string, string]) =>
    String(places(text)) === String(places(translated)) &&
    translated.trim() !== "" &&
    [/^ /, / $/].every((edge) => !edge.test(text) || edge.test(translated));
  expect(Object.entries(CATALOGUE).filter((each) => !isSame(each))).toEqual([]);
});

test("values stand in their places, numbers as the page writes them", () => {
  expect(say("{n} {n|day|days} of {name}", { n: 1, name: "acme" })).toBe("1 day of acme");
  expect(say("{n} {n|day|days} of {name}", { n: 1200, name: "{n}" })).toBe("1,200 days of {n}");
  expect(say("Open [a month]")).toBe("Open");
});

test("a value can be an element", () => {
  const drawn = say("to {day}, {n} {n|row|rows}", { day: createElement("b", null, "today"), n: 2 });
  const box = document.createElement("p");
  render(drawn, box);
  expect(box.innerHTML).toBe("to <b>today</b>, 2 rows");
});

test("the catalogue of the reader's language is there before anything is said", async () => {
  vi.stubGlobal("localStorage", { getItem: (name: string) => (name === "chargeback.language" ? "de" : null) });
  vi.resetModules();
  await (await import("./catalogue")).loadWords();
  const { say: said } = await import("./say");
  expect(said("{n} {n|day|days}", { n: 1 })).toBe("1 Tag");
  expect((await import("../format/names")).dimension("identity_id")).toBe("Identität");
  expect(said("Open [a tenant]")).toBe("Öffnen");
});

test("a browser that prefers German reads German, unless its reader has chosen otherwise", async () => {
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", { getItem: (name: string) => kept.get(name) ?? null });
  const languageOf = async (...languages: string[]) => {
    vi.stubGlobal("navigator", { languages });
    vi.resetModules();
    return (await import("./language")).language;
  };
  expect(await languageOf("fr-FR", "de-AT", "en")).toBe("de");
  expect(await languageOf("fr-FR")).toBe("en");
  kept.set("chargeback.language", "en");
  expect(await languageOf("de")).toBe("en");
  kept.set("chargeback.language", "tlh");
  expect(await languageOf("de")).toBe("de");
});
