import { type ReactNode, useEffect, useState } from "preact/compat";
import { present } from "../api/answer";
import { useAccess } from "../api/me";
import { useTenant } from "../api/questions";
import { useHere } from "../app/router";
import { type Dates, resolve } from "../url/period";
import { during, takes } from "../url/view";
import { say } from "../words/say";
import { CsvLink, CsvPlace, type File } from "./csv";
import { CurrencyButton } from "./currency";
import { Chips, FilterButton, LeftAside } from "./filters";
import { Icon } from "./icons";
import { CompareButton, PeriodButton } from "./period";
import { SaveButton } from "./save";
import { ScopeChips } from "./scope";

interface Props {
  /** The dates of what is shown, where the address alone does not say them. */
  shown?: Dates | null;
  compared?: Dates | null;
  compare?: boolean;
  filters?: boolean;
  /** Whether the page can show its sums in another currency. */
  currencies?: boolean;
  /** What this page shows, for a file: path and query of the API. */
  file?: File | null;
  /** What the usual period is called, where it is not the last 30 days. */
  usual?: string;
  /** The list of the API that is shown, and what it is called where it leaves filters aside. */
  list?: string;
  subject?: string;
  children?: ReactNode;
}

/** Period, comparison and filters of a page, and what can be taken from it. */
export function Toolbar({
  shown = null,
  compared = null,
  compare = true,
  filters = true,
  currencies = false,
  file = null,
  usual,
  list = "/costs",
  subject = say("Costs"),
  children,
}: Props) {
  const here = useHere();
  const tenant = present(useTenant(here.tenant ?? ""));
  const last = tenant?.last_date ?? null;
  const { isKnown, may, scope } = useAccess(here.tenant ?? "");
  const { start, end } = here.view;
  const dates = shown ?? (last ? resolve(here.view, last) : start && end ? { start, end } : null);
  const aside = filters ? here.view.filters.map((each) => each.key).filter((key) => !takes(list, key)) : [];
  return (
    <>
      <search className="tools" aria-label={say("Period and filters")}>
        <PeriodButton dated={dates} last={last} usual={usual} />
        {compare && <CompareButton shown={compared} />}
        {currencies && tenant && <CurrencyButton tenant={tenant} />}
        {scope && <ScopeChips scope={scope} />}
        {filters && (
          <>
            <span className="rule" />
            <Chips />
            <FilterButton tenant={tenant} />
            {here.view.filters.length > 1 && (
              <a className="button plain" href={here.to({ ...here.view, filters: [] })}>
                {say("Clear all")}
              </a>
            )}
          </>
        )}
        <span className="fill" />
        {children}
        <CopyButton link={dates && here.to(during(here.view, dates.start, dates.end))} />
        {file && !isKnown && <CsvPlace />}
        {file && isKnown && may("export") && <CsvLink className="button" file={file} />}
        <SaveButton />
      </search>
      <LeftAside subject={subject} keys={aside} />
    </>
  );
}

/** Copies an address with dates instead of "the last 30 days": a colleague sees tomorrow what you see today. */
function CopyButton({ link }: { link: string | null }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    const whole = new URL(link ?? "", location.href).href;
    try {
      await navigator.clipboard.writeText(whole);
      setCopied(true);
    } catch {
      prompt(say("Copy this link"), whole);
    }
  };
  return (
    <button type="button" className="button" onClick={copy} disabled={link === null}>
      <Icon name={copied ? "check" : "link"} />
      <span aria-live="polite" className="narrow-sr">
        {copied ? say("Copied") : say("Copy link")}
      </span>
    </button>
  );
}
