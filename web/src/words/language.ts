import { remembered } from "../app/memory.ts";

/** The languages of the page, each in its own. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

export const isLanguage = (text: string | null | undefined): text is Language => Object.hasOwn(LANGUAGES, text ?? "");

/** The first of the browser's languages that the page has. Outside a browser, as in tests, it is English. */
export function usual(): Language {
  const wanted = typeof document === "undefined" ? [] : navigator.languages;
  return wanted.map((each) => each.slice(0, 2)).find(isLanguage) ?? "en";
}

function chosen(): Language {
  const found = remembered("language");
  return isLanguage(found) ? found : usual();
}

/** Read once: the page is loaded again when another one is chosen. */
export const language = chosen();
