import { useMemo, useRef, useState } from "preact/compat";
import { depthOf, useRegisters } from "../../api/categories";
import { TOPS, topOf } from "../../api/costs";
import type { Breakdown, Costs } from "../../api/shapes";
import { go, useHere } from "../../app/router";
import type { Band, Plot } from "../../charts/areas";
import { colours } from "../../charts/colours";
import { RankedList } from "../../charts/ranked";
import { MARKS, type MarkKind, TimeChart } from "../../charts/timechart";
import { brief, range, spoken } from "../../format/days";
import { money } from "../../format/money";
import { categoryOf, isCategory, label } from "../../format/names";
import { at, larger, read, sum, type Units } from "../../money/money";
import { Amount, Card, share } from "../../ui/card";
import { Dimensions } from "../../ui/dimensions";
import { useIsDrawn } from "../../ui/drawn";
import { matches } from "../../ui/filters";
import { Icon } from "../../ui/icons";
import { Scroller } from "../../ui/scroller";
import { type Drawing, drawingOf } from "../../url/drawing";
import { isTable, MAIN, toggleTable } from "../../url/tables";
import { during, extra } from "../../url/view";
import { say } from "../../words/say";
import { breakdownFile } from "./cards";
import { DrawnAs } from "./drawnas";
import { comparison, keyOf, maybe, OTHERS, ranked, remainder, valuesOf } from "./facts";
import { useLimit } from "./limit";
import { type Mark, marksAt, useMarks } from "./marks";
import { NotesButton } from "./notes";
import { aheadOf, inSteps, type Series } from "./series";

const MOST = 7;
/** How many marks of a day are said beside it. */
const MOST_TOLD = 3;
/** How a mark is written. */
const SIGNS: Record<MarkKind, string> = { "stands-out": "▼", restated: "◆", note: "●" };

/** The costs of a view over time, by one dimension, beside the same values as a ranked list. */
export function OverTime({ costs, found, choices }: { costs: Costs; found: Breakdown; choices: readonly string[] }) {
  const here = useHere();
  const [lit, setLit] = useState<string | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const { currency, times } = costs;
  const drawing = useMemo(() => drawingOf(here.view), [here.view]);
  const classes = useMemo(
    () =>
      colours(
        found.by,
        found.items.map((each) => each.value),
      ),
    [found],
  );
  const bands = useMemo(() => bandsOf(found, classes), [found, classes]);
  const days = { start: costs.start_date, end: costs.end_date };
  // What is said beside the costs is asked for when they are on the screen.
  const isDrawn = useIsDrawn();
  const marks = useMarks(here.tenant ?? "", here.view, days, isDrawn);
  const limit = useLimit(here.tenant ?? "", here.view, times, currency, isDrawn);
  const series = useMemo(() => seriesOf(costs, bands, limit?.amounts ?? null, drawing), [costs, bands, limit, drawing]);
  const plot = useMemo(() => plotOf(series, drawing, costs.forecast), [series, drawing, costs.forecast]);
  const table = isTable(here.view, MAIN);
  const other = table ? say("Show the chart") : say("Show as a table");
  const compared = costs.compared_with;
  const placed = useMemo(() => marksAt(marks, series.places), [marks, series]);
  const reading = { series, drawing, currency };

  return (
    <Card
      title={say("Over time")}
      note={noteOf(series, drawing)}
      action={
        <>
          {isCategory(found.by) && <Levels by={found.by} />}
          <Dimensions label={say("Stacked by")} by={found.by} choices={choices} />
          <DrawnAs drawing={drawing} bands={bands} days={days} frame={frame} />
          <NotesButton days={days} />
          <a className="button square" href={here.to(toggleTable(here.view, MAIN))} data-replace="" title={other}>
            <Icon name={table ? "costs" : "table"} />
            <span className="sr">{other}</span>
          </a>
        </>
      }
      file={breakdownFile(here, costs, found)}
    >
      <div className="overtime">
        {table ? (
          <AsTable {...reading} />
        ) : (
          <div ref={frame}>
            <TimeChart
              places={series.places}
              plot={plot}
              marked={(index) => MARKS.filter((kind) => at(placed, index).some((each) => each.kind === kind))}
              currency={currency}
              lit={lit}
              describe={(index) => [describe(index, reading), ...at(placed, index).map((each) => each.text)].join(". ")}
              tip={(index) => (
                <>
                  <Tip index={index} {...reading} />
                  {at(placed, index)
                    .slice(0, MOST_TOLD)
                    .map(({ kind, text }) => (
                      <p key={`${kind} ${text}`} className="small">
                        {SIGNS[kind]} {text}
                      </p>
                    ))}
                </>
              )}
              onZoom={(first, last) =>
                go(here.to(during(here.view, at(series.places, first).start, at(series.places, last).end)))
              }
            />
            <p className="legend">
              {compared && drawing.form !== "shares" && (
                <span>
                  <i className="dots" />
                  {say("total of {days}", { days: range(compared.start_date, compared.end_date) })}
                </span>
              )}
              {limit && drawing.form !== "shares" && (
                <a className="more" href={here.to({ ...here.view, extra: {} }, "budgets")}>
                  <i className="dashes" />
                  {nameOfLimit(limit.name, drawing)}
                </a>
              )}
              {plot.ahead && (
                <span>
                  <i className="cone" />
                  {say("likely until {day}, 8 times in 10", { day: brief(costs.forecast?.until ?? "") })}
                </span>
              )}
              {drawing.form === "shares" && <span>{say("shares of what was charged; refunds are left out")}</span>}
              <MarksLegend marks={marks} />
              <span className="wide-only quiet">{say("drag across the chart to zoom")}</span>
            </p>
          </div>
        )}
        <Values costs={costs} found={found} classes={classes} onPoint={setLit} />
      </div>
    </Card>
  );
}

/** What the marks of the chart mean, and the ways to more about them. */
function MarksLegend({ marks }: { marks: readonly Mark[] }) {
  const here = useHere();
  const daysOf = (kind: MarkKind) => new Set(marks.flatMap((each) => (each.kind === kind ? [each.start] : []))).size;
  const [unusual, restated] = [daysOf("stands-out"), daysOf("restated")];
  const notes = marks.filter(({ kind }) => kind === "note").length;
  return (
    <>
      {unusual > 0 && (
        <a className="more" href={here.to({ ...here.view, extra: {} }, "anomalies")}>
          {say("▼ something stands out on {n} {n|day|days}", { n: unusual })}
        </a>
      )}
      {restated > 0 && (
        <a className="more" href={here.to({ ...here.view, extra: {} }, "days")}>
          {say("◆ {n} {n|day was|days were} restated", { n: restated })}
        </a>
      )}
      {notes > 0 && <span>{say("● {n} {n|note|notes}", { n: notes })}</span>}
    </>
  );
}

/** How many places the chart has; what they are stacked by stands behind it. */
function noteOf({ places }: Series, { step, running }: Drawing): string {
  const n = places.length;
  const steps = {
    day: say("{n} {n|day|days}", { n }),
    week: say("{n} {n|week|weeks}", { n }),
    month: say("{n} {n|month|months}", { n }),
  }[step];
  return running ? say("{steps} with all before, by", { steps }) : say("{steps}, by", { steps });
}

function nameOfLimit(name: string, { step, running }: Drawing): string {
  if (running) return say("the budget {name}", { name });
  return {
    day: say("the budget {name}, by day", { name }),
    week: say("the budget {name}, by week", { name }),
    month: say("the budget {name}, by month", { name }),
  }[step];
}

/** The values as a ranked list, more of them if that is wanted, in which one can be found. */
function Values({
  costs,
  found,
  classes,
  onPoint,
}: {
  costs: Costs;
  found: Breakdown;
  classes: readonly string[];
  onPoint: (key: string | null) => void;
}) {
  const here = useHere();
  const [text, setText] = useState("");
  const top = Math.min(topOf(here.view), found.items.length);
  const all = valuesOf(found);
  const items = ranked(found, top, {
    ...here,
    colour: (_, index) => (index < 0 || index >= MOST ? "k-others" : (classes[index] ?? "k-others")),
  }).filter((each) => !text || (each.key !== OTHERS && matches(`${each.name} ${each.id ?? ""}`, text)));
  return (
    <div className="values">
      {top > MOST && (
        <input
          className="field"
          type="search"
          aria-label={say("Find among these values")}
          placeholder={
            top === all ? say("Find among all {n}", { n: top }) : say("Find among the largest {n}", { n: top })
          }
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      )}
      <div className={top > MOST ? "long" : undefined}>
        <RankedList
          items={items}
          whole={read(costs.total.amount)}
          currency={costs.currency}
          swatches
          comparable={comparison(costs).comparable}
          onPoint={onPoint}
        />
        {text && items.length === 0 && <p className="note">{say("None of these is called so.")}</p>}
      </div>
      {all > MOST && (
        <p className="note tops">
          {say("Largest [so many]")}
          {TOPS.map((each) => (
            <a
              key={each}
              href={here.to(extra(here.view, "top", each === TOPS[0] ? null : String(each)))}
              data-replace=""
              aria-current={each === topOf(here.view) ? "true" : undefined}
            >
              {each}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}

/** The ways to what the values of a cost category belong to, and back. */
function Levels({ by }: { by: string }) {
  const here = useHere();
  const { key, level } = categoryOf(by);
  const depth = depthOf(useRegisters(here.tenant ?? "", [by]).get(key));
  const to = (other: number) => here.to({ ...here.view, by: other ? `category:${key}@${other}` : `category:${key}` });
  return (
    <>
      {level < depth && (
        <a className="more" href={to(level + 1)} data-replace="">
          {say("one level up")}
        </a>
      )}
      {level > 0 && (
        <a className="more" href={to(level - 1)} data-replace="">
          {say("one level down")}
        </a>
      )}
    </>
  );
}

/** From the bottom: the largest first, the others on top. */
function bandsOf(found: Breakdown, classes: readonly string[]): Band[] {
  const items = found.items
    .slice(0, MOST)
    .flatMap((item, index) => (item.amounts ? [{ item, amounts: item.amounts, colour: at(classes, index) }] : []));
  const bands: Band[] = items
    .sort((a, b) => larger(read(a.item.amount), read(b.item.amount)))
    .map(({ item, amounts, colour }) => ({
      key: keyOf(item.value),
      name: label(found.by, item.value, item.name).name,
      colour,
      amounts: amounts.map(read),
    }));
  const others = [...found.items.slice(MOST), ...(found.other ? [found.other] : [])].flatMap((each) =>
    each.amounts ? [each.amounts] : [],
  );
  const rest = remainder(found, MOST);
  if (rest && others[0]) {
    const amounts = others[0].map((_, index) => sum(others.map((each) => read(at(each, index)))));
    bands.push({ key: OTHERS, name: rest.name, colour: "k-others", amounts });
  }
  return bands;
}

/** The costs as they are drawn, from those of single days. */
function seriesOf(costs: Costs, bands: readonly Band[], limit: Series["limit"], drawing: Drawing): Series {
  const places = costs.times.map((time) => ({ start: time.slice(0, 10), end: time.slice(0, 10) }));
  const before = costs.compared_with && costs.times.map((_, index) => maybe(costs.previous_amounts[index]));
  return inSteps({ places, bands, totals: costs.amounts.map(read), before, limit }, drawing);
}

function plotOf(series: Series, drawing: Drawing, forecast: Costs["forecast"]): Plot {
  const { places, bands, before, limit } = series;
  return {
    form: drawing.form,
    places: places.length,
    bands,
    before,
    limit,
    ahead: aheadOf(series, drawing, forecast),
  };
}

interface Reading {
  series: Series;
  drawing: Drawing;
  currency: string;
}

/** What a place is called. */
function named(series: Series, { running }: Drawing, index: number): string {
  const { start, end } = at(series.places, index);
  const first = at(series.places, 0).start;
  if (running && first !== start) return `${range(first, end)}`;
  return start === end ? spoken(start) : range(start, end);
}

function Tip({ index, series, drawing, currency }: Reading & { index: number }) {
  const { bands, totals, before } = series;
  const total = at(totals, index);
  const earlier = before?.[index];
  return (
    <>
      <b>{named(series, drawing, index)}</b>
      <table>
        <tbody>
          {[...bands].reverse().map((band) => (
            <tr key={band.key}>
              <th scope="row">
                <span className={`swatch ${band.colour}`} />
                {band.name}
              </th>
              <td>{money(at(band.amounts, index), currency)}</td>
              <td className="quiet">{share(at(band.amounts, index), total)}</td>
            </tr>
          ))}
          <tr className="sum">
            <th scope="row">{say("Total")}</th>
            <td>{money(total, currency)}</td>
            <td />
          </tr>
          {earlier != null && (
            <tr className="quiet">
              <th scope="row">{say("Period before")}</th>
              <td>{money(earlier, currency)}</td>
              <td />
            </tr>
          )}
        </tbody>
      </table>
    </>
  );
}

function describe(index: number, { series, drawing, currency }: Reading): string {
  const parts = series.bands.map((band) => `${band.name} ${money(at(band.amounts, index), currency)}`);
  return `${named(series, drawing, index)}: ${money(at(series.totals, index), currency)}. ${parts.join(", ")}`;
}

const TABLES: Record<Drawing["step"], string> = {
  day: say("Costs of each day"),
  week: say("Costs of each week"),
  month: say("Costs of each month"),
};

function AsTable({ series, drawing, currency }: Reading) {
  const { places, totals, bands } = series;
  const whole = (amounts: readonly Units[]) => (drawing.running ? at(amounts, amounts.length - 1) : sum(amounts));
  return (
    <Scroller style={{ maxHeight: "22rem" }} label={TABLES[drawing.step]}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{drawing.step === "day" ? say("Day") : say("Days")}</th>
            <th scope="col" className="end">
              {say("Total")}
            </th>
            {bands.map((band) => (
              <th key={band.key} scope="col" className="end">
                {band.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {places.map(({ start }, index) => (
            <tr key={start}>
              <th scope="row" className="num">
                {named(series, drawing, index)}
              </th>
              <td className="end">
                <Amount amount={at(totals, index)} currency={currency} />
              </td>
              {bands.map((band) => (
                <td key={band.key} className="end">
                  <Amount amount={at(band.amounts, index)} currency={currency} />
                </td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row">{say("Total")}</th>
            <td className="end">
              <Amount amount={whole(totals)} currency={currency} />
            </td>
            {bands.map((band) => (
              <td key={band.key} className="end">
                <Amount amount={whole(band.amounts)} currency={currency} />
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </Scroller>
  );
}
