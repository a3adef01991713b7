import { extra, type View } from "./view";

const STEPS = ["day", "week", "month"] as const;
const FORMS = ["areas", "bars", "lines", "shares"] as const;
const RUNNING = "running";

/** How costs are drawn over time. */
export interface Drawing {
  /** What each place of the chart has. */
  step: (typeof STEPS)[number];
  /** `shares` are areas that fill the chart: parts of a hundred. */
  form: (typeof FORMS)[number];
  /** Whether each place has all that lies before it, too. */
  running: boolean;
}

/** How the address says that costs are drawn, such as `chart=week.lines.running`; areas of days if it says nothing. */
export function drawingOf(view: View): Drawing {
  const words = (view.extra.chart ?? "").split(".");
  return {
    step: STEPS.find((each) => words.includes(each)) ?? "day",
    form: FORMS.find((each) => words.includes(each)) ?? "areas",
    running: words.includes(RUNNING),
  };
}

/** The same view, drawn in another way. */
export function drawn(view: View, change: Partial<Drawing>): View {
  const { step, form, running } = { ...drawingOf(view), ...change };
  const words = [step !== "day" && step, form !== "areas" && form, running && RUNNING].filter(Boolean);
  return extra(view, "chart", words.length ? words.join(".") : null);
}
