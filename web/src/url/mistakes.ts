import { isDay } from "../calendar/days";
import { say } from "../words/say";
import { readView } from "./view";

/** What a query says of the period, the comparison, the dimension or the currency that cannot be: the usual is shown in its
 * place, and never without a word. */
export function mistakesOf(search: string): string[] {
  const params = new URLSearchParams(search);
  const view = readView(search);
  const [start, end] = [params.get("start_date"), params.get("end_date")];
  const dated = start !== null || end !== null;
  const found: (string | false)[] = [
    dated && view.start === null && datesWrong(start ?? "", end ?? ""),
    ...(["period", "compare", "by", "currency"] as const).map((name) => {
      const text = params.get(name);
      const isRead = name === "period" && dated ? view.start !== null || view.period === text : view[name] === text;
      return text !== null && !isRead && say("{what} “{text}” is not known", { what: NAMES[name], text });
    }),
  ];
  return found.filter((each) => each !== false);
}

const NAMES = {
  period: say("the period"),
  compare: say("the comparison"),
  by: say("the dimension"),
  currency: say("the currency"),
};

function datesWrong(start: string, end: string): string {
  const wrong = [start, end].find((each) => !isDay(each));
  if (wrong === undefined) return say("the last day, {end}, is before the first, {start}", { start, end });
  return wrong === "" ? say("one of its two dates is missing") : say("“{day}” is no day", { day: wrong });
}
