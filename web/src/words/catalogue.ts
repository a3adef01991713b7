import { language } from "./language.ts";

/** What the page says in another language than English, by what it says in English. */
export const catalogue: Record<string, string> = {};

/** What the service says, in the same way. */
export const service: Record<string, string> = {};

/** Fill the catalogues of the reader's language, before any module of the page says something: constants do so, too. The
 * page is English where its words cannot be loaded. */
export async function loadWords(): Promise<void> {
  if (language === "en") return;
  const [own, its] = await Promise.all([import("./de.json"), import("./service.de.json")]);
  Object.assign(catalogue, own.default);
  Object.assign(service, its.default);
}
