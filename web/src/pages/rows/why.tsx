import { useState } from "react";
import { EXPLAIN, useExplained } from "../../api/questions";
import type { Explained } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { exact, split } from "../../format/money";
import { label } from "../../format/names";
import { Drawer } from "../../ui/drawer";
import { Answered, Bone } from "../../ui/states";
import { readView, toggle } from "../../url/view";
import { Contenders } from "./contenders";
import { type Parts, PartsOf } from "./parts";
import { Revisions } from "./revisions";
import { stepsOf } from "./steps";

interface Props {
  /** The link to the explanation, as the metadata of a row has it. */
  link: string;
  currency: string;
  /** The values of the row by cost category, where there are any. */
  categories?: Parts | null | undefined;
  onClose: () => void;
}

/** Why this amount: from the bill to the share, step by step, and who shares it. */
export function Why({ link, currency, categories, onClose }: Props) {
  const here = useHere();
  const [asked, setAsked] = useState(link);
  const [listed, setListed] = useState(EXPLAIN);
  const query = useExplained(here.tenant ?? "", asked, listed);
  return (
    <Drawer title="Why this amount?" onClose={onClose}>
      <Answered answer={query} skeleton={<Bone height={30} />}>
        {(found) => (
          <>
            <Told found={found} currency={currency} />
            {categories && asked === link && <PartsOf categories={categories} currency={currency} />}
            <Contenders
              found={found}
              ask={(who) => setAsked(other(asked, who))}
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

/** The same link for another identity, or another topic. */
export function other(link: string, who: string): string {
  const [path = "", query = ""] = link.split("?");
  const params = new URLSearchParams(query);
  params.set(params.has("topic_name") ? "topic_name" : "identity_id", who);
  return `${path}?${params}`;
}

function Told({ found, currency }: { found: Explained; currency: string }) {
  const told = found.row?.amount;
  const [amount, more] = told === undefined ? ["nothing"] : split(told, currency);
  return (
    <>
      <p className="sentence" aria-live="polite">
        {found.sentence}
      </p>
      <p className="whole" title={told && exact(told, currency)}>
        {amount}
        <span>{more}</span>
      </p>
      <p className="note">
        {currency} on {full(found.date)}
      </p>
      {found.recomputed === "different" && (
        <p className="warning">The calculation gives another result than is stored.</p>
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
          All of {label("identity_id", found.identity_id, found.identity_name).name}
        </a>
      )}
      {resource && (
        <a className="button" href={here.to(toggle(whole, "resource_id", resource.resource_id), "item")}>
          All of {label("resource_id", resource.resource_id, found.line?.resource_name).name}
        </a>
      )}
      <a className="button" href={here.to(ofLine, "rows")}>
        All shares of this line
      </a>
    </p>
  );
}
