import { language } from "./language.ts";

/** What the page says in another language than English, by what it says in English. */
export const catalogue: Record<string, string> = {};

/** Fill the catalogue of the reader's language, before any module of the page says something: constants do so, too. The
 * page is English where its words cannot be loaded. */
export async function loadWords(): Promise<void> {
  if (language !== "en") Object.assign(catalogue, (await import("./de.json")).default);
}
