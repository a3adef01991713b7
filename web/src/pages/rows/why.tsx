import { useState } from "preact/compat";
import { EXPLAIN, useExplained } from "../../api/questions";
import type { Explained } from "../../api/shapes";
import { go, goBack, useHere } from "../../app/router";
import { full } from "../../format/days";
import { exact, split } from "../../format/money";
import { label } from "../../format/names";
import { Drawer } from "../../ui/drawer";
import { Answered, Bone } from "../../ui/states";
import { extra, readView, toggle } from "../../url/view";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { Contenders } from "./contenders";
import { PartsOf } from "./parts";
import { Revisions } from "./revisions";
import { stepsOf } from "./steps";

/** Open the explanation that a row links to, if it does. It has an address: Back closes it, and it can be sent. */
export function useExplain(): (row: { metadata: { explain?: unknown } }) => void {
  const here = useHere();
  return ({ metadata: { explain } }) => {
    const asked = String(explain ?? "").split("?")[1];
    if (asked) go(here.to(extra(here.view, "why", asked)));
  };
}

interface Props {
  list: "/chargebacks" | "/topic-attributions";
  /** Which row of the list it is, as the explanation is asked for it. */
  asked: string;
  currency: string;
}

/** Why this amount: from the bill to the share, step by step, and who shares it. */
export function Why({ list, asked, currency }: Props) {
  const here = useHere();
  const [listed, setListed] = useState(EXPLAIN);
  const query = useExplained(here.tenant ?? "", `${list.slice(1)}/explain?${asked}`, listed);
  return (
    <Drawer title={say("Why this amount?")} onClose={() => goBack(here.to(extra(here.view, "why", null)))}>
      <Answered answer={query} skeleton={<Bone height={30} />}>
        {(found) => (
          <>
            <Told found={found} currency={currency} />
            <PartsOf list={list} asked={asked} found={found} currency={currency} />
            <Contenders
              found={found}
              ask={(who) => go(here.to(extra(here.view, "why", other(asked, who))), { replace: true })}
              more={() => setListed((most) => Math.min(most * 5, 1000))}
            />
            <Revisions found={found} currency={currency} />
            <Further found={found} />
          </>
        )}
      </Answered>
    </Drawer>
  );
}

/** The same question about another identity, or another topic. */
function other(asked: string, who: string): string {
  const params = new URLSearchParams(asked);
  params.set(params.has("topic_name") ? "topic_name" : "identity_id", who);
  return params.toString();
}

function Told({ found, currency }: { found: Explained; currency: string }) {
  const told = found.row?.amount;
  const [amount, more] = told === undefined ? [say("nothing [an amount]")] : split(told, currency);
  return (
    <>
      <p className="sentence" aria-live="polite">
        {reworded(found.sentence)}
      </p>
      <p className="whole" title={told && exact(told, currency)}>
        {amount}
        <span>{more}</span>
      </p>
      <p className="note">{say("{currency} on {day}", { currency, day: full(found.date) })}</p>
      {found.recomputed === "different" && (
        <p className="warning">{say("The calculation gives another result than is stored.")}</p>
      )}
      <ol className="steps">
        {stepsOf(found, currency).map((step) => (
          <li key={step.title}>
            <h3>{step.title}</h3>
            <p>{step.text}</p>
            {step.share !== undefined && (
              <span className="gauge" aria-hidden="true">
                <i style={{ width: `${step.share * 100}%` }} />
              </span>
            )}
            {step.note && <p className="note">{step.note}</p>}
            {step.more}
          </li>
        ))}
      </ol>
    </>
  );
}

/** Where to look further. */
function Further({ found }: { found: Explained }) {
  const here = useHere();
  const { period, start, end } = here.view;
  const whole = { ...readView(""), period, start, end };
  const topic = "topic_name" in found;
  const resource = found.line ?? (topic ? null : found.row);
  const ofLine = toggle({ ...whole, extra: topic ? { tab: "topics" } : {} }, "line_id", found.line_id);
  return (
    <p className="tools">
      {!topic && (
        <a className="button" href={here.to(toggle(whole, "identity_id", found.identity_id), "item")}>
          {say("All of {name}", { name: label("identity_id", found.identity_id, found.identity_name).name })}
        </a>
      )}
      {resource && (
        <a className="button" href={here.to(toggle(whole, "resource_id", resource.resource_id), "item")}>
          {say("All of {name}", { name: label("resource_id", resource.resource_id, found.line?.resource_name).name })}
        </a>
      )}
      <a className="button" href={here.to(ofLine, "rows")}>
        {say("All shares of this line")}
      </a>
    </p>
  );
}
