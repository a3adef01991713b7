import { useMemo, useState } from "react";
import { depthOf, useRegisters } from "../../api/categories";
import type { Breakdown, Costs } from "../../api/shapes";
import { go, useHere } from "../../app/router";
import type { Band } from "../../charts/areas";
import { colours } from "../../charts/colours";
import { RankedList } from "../../charts/ranked";
import { Stacked } from "../../charts/stacked";
import { count, range, spoken } from "../../format/days";
import { money } from "../../format/money";
import { categoryOf, isCategory, label } from "../../format/names";
import { at, larger, read, sum, type Units } from "../../money/money";
import { Amount, Card, share } from "../../ui/card";
import { Dimensions } from "../../ui/dimensions";
import { Icon } from "../../ui/icons";
import { Scroller } from "../../ui/scroller";
import { isTable, MAIN, toggleTable } from "../../url/tables";
import { during } from "../../url/view";
import { breakdownFile } from "./cards";
import { comparison, keyOf, maybe, OTHERS, ranked } from "./facts";
import { useLimit } from "./limit";
import { useMarks } from "./marks";

const MOST = 7;
/** How much of what stands out on a day is said beside it. */
const MOST_TOLD = 2;

/** The costs of each day, stacked by one dimension, beside the same values as a ranked list. */
export function OverTime({ costs, found, choices }: { costs: Costs; found: Breakdown; choices: readonly string[] }) {
  const here = useHere();
  const [lit, setLit] = useState<string | null>(null);
  const { currency, times } = costs;
  const whole = read(costs.total.amount);
  const classes = useMemo(
    () =>
      colours(
        found.by,
        found.items.map((each) => each.value),
      ),
    [found],
  );
  const bands = useMemo(() => bandsOf(found, classes), [found, classes]);
  const before = useMemo(() => (costs.compared_with ? costs.previous_amounts.map(maybe) : null), [costs]);
  const totals = useMemo(() => costs.amounts.map(read), [costs]);
  const { comparable } = comparison(costs);
  const table = isTable(here.view, MAIN);
  const items = ranked(found, MOST, {
    ...here,
    colour: (_, index) => (index < 0 ? "k-others" : (classes[index] ?? "k-others")),
  });
  const compared = costs.compared_with;
  const marks = useMarks(here.tenant ?? "", here.view);
  const limit = useLimit(here.tenant ?? "", here.view, times, currency);

  return (
    <Card
      title="Over time"
      note={`${count(times.length, "day")}, stacked by`}
      action={
        <>
          {isCategory(found.by) && <Levels by={found.by} />}
          <Dimensions label="Stacked by" by={found.by} choices={choices} />
          <a
            className="button square"
            href={here.to(toggleTable(here.view, MAIN))}
            data-replace=""
            title={table ? "Show the chart" : "Show as a table"}
          >
            <Icon name={table ? "costs" : "table"} />
            <span className="sr">{table ? "Show the chart" : "Show as a table"}</span>
          </a>
        </>
      }
      file={breakdownFile(here, costs, found)}
    >
      <div className="overtime">
        {table ? (
          <AsTable costs={costs} bands={bands} totals={totals} />
        ) : (
          <div>
            <Stacked
              times={times}
              bands={bands}
              before={before}
              limit={limit ? limit.amounts : null}
              marked={(time) => marks.has(time)}
              currency={currency}
              lit={lit}
              describe={(index) =>
                describe(index, costs, bands, totals) + (marks.has(at(times, index)) ? ". Something stands out" : "")
              }
              tip={(index) => (
                <>
                  <Tip index={index} costs={costs} bands={bands} totals={totals} before={before} />
                  {marks
                    .get(at(times, index))
                    ?.slice(0, MOST_TOLD)
                    .map((each) => (
                      <p key={each} className="small">
                        ▼ {each}
                      </p>
                    ))}
                </>
              )}
              onZoom={(first, last) => go(here.to(during(here.view, first, last)))}
            />
            <p className="legend">
              {compared && (
                <span>
                  <i className="dots" />
                  total of {range(compared.start_date, compared.end_date)}
                </span>
              )}
              {limit && (
                <a className="more" href={here.to({ ...here.view, extra: {} }, "budgets")}>
                  <i className="dashes" />
                  the budget {limit.name}, by day
                </a>
              )}
              {marks.size > 0 && (
                <a className="more" href={here.to({ ...here.view, extra: {} }, "anomalies")}>
                  ▼ something stands out on {count(marks.size, "day")}
                </a>
              )}
              <span className="wide-only quiet">drag across the chart to zoom</span>
            </p>
          </div>
        )}
        <RankedList items={items} whole={whole} currency={currency} swatches comparable={comparable} onPoint={setLit} />
      </div>
    </Card>
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
          one level up
        </a>
      )}
      {level > 0 && (
        <a className="more" href={to(level - 1)} data-replace="">
          one level down
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
  if (found.other?.amounts) {
    bands.push({
      key: OTHERS,
      name: count(found.other.count, "other"),
      colour: "k-others",
      amounts: found.other.amounts.map(read),
    });
  }
  return bands;
}

interface Reading {
  costs: Costs;
  bands: readonly Band[];
  totals: readonly Units[];
}

function Tip({
  index,
  costs,
  bands,
  totals,
  before,
}: Reading & { index: number; before: readonly (Units | null)[] | null }) {
  const { currency, times } = costs;
  const total = at(totals, index);
  const earlier = before?.[index];
  return (
    <>
      <b>{spoken(at(times, index))}</b>
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
            <th scope="row">Total</th>
            <td>{money(total, currency)}</td>
            <td />
          </tr>
          {earlier != null && (
            <tr className="quiet">
              <th scope="row">Period before</th>
              <td>{money(earlier, currency)}</td>
              <td />
            </tr>
          )}
        </tbody>
      </table>
    </>
  );
}

function describe(index: number, { currency, times }: Costs, bands: readonly Band[], totals: readonly Units[]): string {
  const parts = bands.map((band) => `${band.name} ${money(at(band.amounts, index), currency)}`);
  return `${spoken(at(times, index))}: ${money(at(totals, index), currency)}. ${parts.join(", ")}`;
}

function AsTable({ costs, bands, totals }: Reading) {
  const { currency, times } = costs;
  return (
    <Scroller style={{ maxHeight: "22rem" }} label="Costs of each day">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col" className="end">
              Total
            </th>
            {bands.map((band) => (
              <th key={band.key} scope="col" className="end">
                {band.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time, index) => (
            <tr key={time}>
              <th scope="row" className="num">
                {spoken(time)}
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
            <th scope="row">Total</th>
            <td className="end">
              <Amount amount={sum(totals)} currency={currency} />
            </td>
            {bands.map((band) => (
              <td key={band.key} className="end">
                <Amount amount={sum(band.amounts)} currency={currency} />
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </Scroller>
  );
}
