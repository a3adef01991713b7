/** Reads sentences of the service as JSON, and prints what a German reader sees, null for one that is not known. */
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";

Object.assign(globalThis, { localStorage: { getItem: (name: string) => (name.endsWith(".language") ? "de" : null) } });
const { service } = await import("../src/words/catalogue.ts");
const { reworded } = await import("../src/words/reworded.ts");
Object.assign(service, JSON.parse(readFileSync(new URL("../src/words/service.de.json", import.meta.url), "utf8")));
const sentences: string[] = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(sentences.map((each) => (reworded(each) === each ? null : reworded(each)))));
