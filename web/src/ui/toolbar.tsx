import { type ReactNode, useEffect, useState } from "react";
import { address, type Query } from "../api/client";
import { useTenant } from "../api/questions";
import { useHere } from "../app/router";
import { length } from "../format/days";
import { during, type View } from "../url/view";
import { Chips, FilterButton } from "./filters";
import { Icon } from "./icons";
import { CompareButton, PeriodButton } from "./period";

interface Props {
  shown: { start: string; end: string } | null;
  compared?: { start: string; end: string } | null;
  compare?: boolean;
  filters?: boolean;
  /** What this page shows, for a file: path and query of the API. */
  file?: { path: string; query: Query; name: string } | null;
  children?: ReactNode;
}

/** The dates of an answer that says them, else those of the address. */
export function datesOf(view: View, answer: { start_date?: string; end_date?: string } | undefined): Props["shown"] {
  const [start, end] = [answer?.start_date ?? view.start, answer?.end_date ?? view.end];
  return start && end ? { start, end } : null;
}

/** Period, comparison and filters of a page, and what can be taken from it. */
export function Toolbar({ shown, compared = null, compare = true, filters = true, file = null, children }: Props) {
  const here = useHere();
  const tenant = useTenant(here.tenant ?? "").data;
  const days = shown ? length(shown.start, shown.end) : 0;
  return (
    <search className="tools" aria-label="Period and filters">
      <PeriodButton shown={shown} last={tenant?.last_date ?? null} />
      {compare && <CompareButton shown={compared} />}
      {filters && (
        <>
          <span className="rule" />
          <Chips />
          <FilterButton tenant={tenant} />
          {here.view.filters.length > 1 && (
            <a className="button plain" href={here.to({ ...here.view, filters: [] })}>
              Clear all
            </a>
          )}
        </>
      )}
      <span className="fill" />
      {children}
      {days > 0 && shown && <CopyButton link={here.to(during(here.view, shown.start, shown.end))} />}
      {file && (
        <a className="button" href={address(file.path, file.query)} download={file.name}>
          <Icon name="download" />
          CSV
        </a>
      )}
    </search>
  );
}

/** Copies an address with dates instead of "the last 30 days": a colleague sees tomorrow what you see today. */
function CopyButton({ link }: { link: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    const whole = new URL(link, location.href).href;
    try {
      await navigator.clipboard.writeText(whole);
      setCopied(true);
    } catch {
      prompt("Copy this link", whole);
    }
  };
  return (
    <button type="button" className="button" onClick={copy}>
      <Icon name={copied ? "check" : "link"} />
      <span aria-live="polite">{copied ? "Copied" : "Copy link"}</span>
    </button>
  );
}
