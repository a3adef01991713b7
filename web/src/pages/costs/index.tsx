import type { ReactNode } from "preact/compat";
import { useAllCosts } from "../../api/questions";
import type { Costs } from "../../api/shapes";
import { useHere } from "../../app/router";
import { InStep } from "../../charts/pointed";
import { range } from "../../format/days";
import { money } from "../../format/money";
import { isCategory } from "../../format/names";
import { rowsFile } from "../../ui/csv";
import { useIsDrawn } from "../../ui/drawn";
import { NothingHere } from "../../ui/nothing";
import { Answered } from "../../ui/states";
import { Toolbar } from "../../ui/toolbar";
import { say } from "../../words/say";
import { BreakdownCard, IssuesCard, TopicsCard, WhatChanged } from "./cards";
import { DaysCard, Waiting } from "./days";
import { OverTime } from "./overtime";
import { CardBones, Skeleton } from "./skeleton";
import { Tiles } from "./tiles";
import { Yours } from "./yours";

const CARDS = 3;

/** How much, who, why, what changed, complete?, no owner, month's end, which topic: one look. */
export function CostsPage() {
  return <CostsView head={<Yours />} />;
}

interface ViewProps {
  head?: ReactNode;
  /** Dimensions that say nothing here, because one value of them is what the page is about. */
  leave?: readonly string[];
  /** What is shown over time unless the address says so. */
  usual?: string | null;
}

/** The cards of the costs page; `head` stands above them, and says whose bill it is. */
export function CostsView({ head, leave = [], usual = null }: ViewProps) {
  const here = useHere();
  const name = here.tenant ?? "";
  const answer = useAllCosts(name, { ...here.view, by: here.view.by ?? usual });
  const costs = answer.known?.data;
  const compared = costs?.compared_with
    ? { start: costs.compared_with.start_date, end: costs.compared_with.end_date }
    : null;
  return (
    <>
      <Toolbar compared={compared} file={rowsFile(name, here.view, "costs")} currencies />
      {head}
      <Answered answer={answer} skeleton={<Skeleton />}>
        {(found) => (
          <>
            {found.days && <Waiting days={found.days} currency={found.currency} />}
            <Cards costs={found} leave={leave} />
          </>
        )}
      </Answered>
      <p className="sr" role="status">
        {costs && !answer.known?.isOld
          ? say("Total {amount}, {days}", {
              amount: money(costs.total.amount, costs.currency),
              days: range(costs.start_date, costs.end_date),
            })
          : ""}
      </p>
    </>
  );
}

function Cards({ costs, leave }: { costs: Costs; leave: readonly string[] }) {
  // The chart is drawn first, and what is below it once it is on the screen.
  const isDrawn = useIsDrawn();
  const dimensions = costs.breakdowns.map((each) => each.by);
  // The first breakdown is the one over time.
  const [main] = costs.breakdowns;
  if (!main || costs.total.rows === 0)
    return (
      <>
        <Tiles costs={costs} />
        <NothingHere title={say("No costs in this view")} when={range(costs.start_date, costs.end_date)} />
        <DaysCard costs={costs} />
      </>
    );
  const order = [...dimensions.filter(isCategory), "product_type", "environment_id", "resource_id", "identity_id"];
  const others = [...order, ...dimensions].filter(
    (each, n, all) => all.indexOf(each) === n && each !== main.by && !leave.includes(each),
  );
  const shown = others.flatMap((by) => costs.breakdowns.filter((each) => each.by === by)).slice(0, CARDS);
  return (
    <InStep>
      <Tiles costs={costs} />
      <OverTime costs={costs} found={main} choices={segments(dimensions).filter((each) => !leave.includes(each))} />
      {isDrawn ? (
        <>
          <div className="cards">
            <WhatChanged costs={costs} found={main} />
            {shown.map((each) => (
              <BreakdownCard key={each.by} costs={costs} found={each} />
            ))}
            <TopicsCard costs={costs} />
            <IssuesCard costs={costs} />
          </div>
          <DaysCard costs={costs} />
        </>
      ) : (
        <CardBones />
      )}
    </InStep>
  );
}

/** The same order, whatever is chosen: categories first, then tags. */
function segments(dimensions: readonly string[]): string[] {
  const usual = ["identity_id", "environment_id", "product_type", "resource_id"];
  return [
    ...dimensions.filter(isCategory).sort(),
    ...dimensions.filter((each) => each.startsWith("tag:")),
    ...usual.filter((each) => dimensions.includes(each)),
  ];
}
