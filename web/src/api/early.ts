/** Questions that are asked before anything is there to show their answers. Nothing here needs words: they come later. */

/** By address; `data` once it is answered. */
const early = new Map<string, { answer: Promise<Response>; data?: unknown }>();

/** Ask an address of the API. The browser keeps answers with their ETag and asks whether they changed. */
export const fetchJson = (url: string, { headers, ...more }: RequestInit = {}): Promise<Response> =>
  fetch(url, { cache: "no-cache", headers: { Accept: "application/json", ...headers }, ...more });

/** Whether an answer is one of the API. */
export const isJson = (answer: Response) => /[/+]json\b/.test(answer.headers.get("Content-Type") ?? "");

/** Ask an address whose answer is wanted as soon as there is something to show it: whoever reads it first has it. */
export function askEarly(url: string): void {
  const asked: { answer: Promise<Response>; data?: unknown } = { answer: fetchJson(url) };
  early.set(url, asked);
  // Whoever reads it is told what went wrong.
  asked.answer
    .then(async (answer) => {
      if (answer.ok && isJson(answer)) asked.data = await answer.clone().json();
    })
    .catch(() => undefined);
}

/** What was asked early, if it is answered and was not read yet. */
export function takeEarly<T>(url: string): T | undefined {
  const data = early.get(url)?.data;
  if (data !== undefined) early.delete(url);
  return data as T | undefined;
}

/** The answer to what was asked early, and was not read yet. */
export function earlyAnswer(url: string): Promise<Response> | undefined {
  const answer = early.get(url)?.answer;
  early.delete(url);
  return answer;
}
