import { useMutation } from "@tanstack/react-query";
import type { RefObject } from "preact/compat";
import { useHere } from "../../app/router";
import type { Band } from "../../charts/areas";
import { copyPicture } from "../../charts/copying";
import { range } from "../../format/days";
import { Icon } from "../../ui/icons";
import { Popover } from "../../ui/popover";
import { Refusal } from "../../ui/refusal";
import { type Drawing, drawn } from "../../url/drawing";
import type { Dates } from "../../url/period";
import { say } from "../../words/say";

const STEPS = [
  ["day", say("Day by day")],
  ["week", say("Week by week")],
  ["month", say("Month by month")],
] as const;
const FORMS = [
  ["areas", say("Stacked areas")],
  ["bars", say("Stacked bars")],
  ["lines", say("Lines [of a chart]")],
  ["shares", say("Shares of 100%")],
] as const;

interface Props {
  drawing: Drawing;
  bands: readonly Band[];
  days: Dates;
  /** What the chart is in. */
  frame: RefObject<HTMLElement | null>;
}

/** Choose how costs are drawn over time, or take the chart along as it is. */
export function DrawnAs({ drawing, bands, days, frame }: Props) {
  const { view, to } = useHere();
  const copy = async () => {
    const chart = frame.current?.querySelector("svg");
    if (!chart) return;
    const legend = [...bands].reverse().map(({ name, colour }) => ({ name, colour }));
    const title = say("Costs, {days}", { days: range(days.start, days.end) });
    await copyPicture(chart, { title, legend }, `costs-${days.start}-${days.end}.png`);
  };
  return (
    <Popover
      name={say("How costs are drawn")}
      icon="costs"
      plain
      label={<span className="narrow-sr">{say("Drawn as")}</span>}
    >
      {(close) => {
        const choice = (text: string, change: Partial<Drawing>, chosen: boolean) => (
          <li key={text}>
            <a
              href={to(drawn(view, change))}
              data-replace=""
              aria-current={chosen ? "true" : undefined}
              onClick={close}
            >
              {text}
            </a>
          </li>
        );
        return (
          <>
            <ul>
              {STEPS.map(([step, text]) => choice(text, { step }, drawing.step === step))}
              {choice(say("Each with all before it"), { running: !drawing.running }, drawing.running)}
            </ul>
            <hr />
            <ul>{FORMS.map(([form, text]) => choice(text, { form }, drawing.form === form))}</ul>
            {frame.current && (
              <>
                <hr />
                <CopyButton copy={copy} onCopied={close} />
              </>
            )}
          </>
        );
      }}
    </Popover>
  );
}

function CopyButton({ copy, onCopied }: { copy: () => Promise<void>; onCopied: () => void }) {
  const attempt = useMutation({ mutationFn: copy });
  return (
    <>
      <ul>
        <li>
          <button
            type="button"
            disabled={attempt.isPending}
            onClick={() => attempt.mutate(undefined, { onSuccess: onCopied })}
          >
            <Icon name="link" />
            {say("Copy as picture")}
          </button>
        </li>
      </ul>
      <Refusal of={attempt} />
    </>
  );
}
