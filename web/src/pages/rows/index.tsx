import { address } from "../../api/address";
import { present } from "../../api/answer";
import { useTenant } from "../../api/questions";
import { useHere } from "../../app/router";
import { instant } from "../../format/days";
import { dimension } from "../../format/names";
import { Chip } from "../../ui/filters";
import { Toolbar } from "../../ui/toolbar";
import { isMoment } from "../../url/moment";
import { apiQuery, extra } from "../../url/view";
import { say } from "../../words/say";
import { Charges } from "./charges";
import { Lines } from "./lines";
import { TopicRows } from "./topics";
import { Why } from "./why";

/** The kinds of rows: what the API calls the list, and what the page calls it. */
const CHARGES = { list: "/chargebacks", file: "rows", name: say("Charges") } as const;
const KINDS = {
  lines: { list: "/billing", file: "bill-lines", name: say("Bill lines") },
  topics: { list: "/topic-attributions", file: "topic-rows", name: say("Topics") },
} as const;
/** What the parts of topics are narrowed by: the page's words, and the API's. */
const OF_TOPICS = { cluster: "cluster_resource_id", topic: "topic_name" } as const;

/** Every share of every billing line, the lines themselves, or the parts of topics, to the last digit. */
export function RowsPage() {
  const here = useHere();
  const { view } = here;
  const name = here.tenant ?? "";
  const tenant = present(useTenant(name));
  const currency = tenant?.currency ?? "";
  const tab = view.extra.tab === "lines" || view.extra.tab === "topics" ? view.extra.tab : "";
  const kind = tab ? KINDS[tab] : CHARGES;
  const narrowed = (tab === "topics" ? (["cluster", "topic"] as const) : []).flatMap((word) => {
    const value = view.extra[word];
    return value ? [{ word, key: OF_TOPICS[word], value, not: false }] : [];
  });
  const then = view.extra.as_of && isMoment(view.extra.as_of) ? view.extra.as_of : null;
  const asked = {
    query: { ...apiQuery(view, { compare: false }), ...(then && { as_of: then }) },
    filters: [...view.filters, ...narrowed],
  };
  const file = { href: address(name, `${kind.list}.csv`, asked), name: `${name}-${kind.file}.csv` };
  const tabs = Object.entries({ "": CHARGES, ...KINDS }).filter(
    ([each]) => each !== "topics" || tab === "topics" || tenant?.features.topics,
  );
  return (
    <>
      <Toolbar compare={false} file={file} list={kind.list} subject={kind.name}>
        {narrowed.map(({ word, key, value }) => (
          <Chip
            key={word}
            what={say("{dimension} is", { dimension: dimension(key) })}
            name={value}
            without={here.to(extra(view, word, null))}
          />
        ))}
        {then && <Chip what={say("As it was")} name={instant(then)} without={here.to(extra(view, "as_of", null))} />}
      </Toolbar>
      <nav className="segments tabs" aria-label={say("Kind of rows")}>
        {tabs.map(([each, { name: title }]) => (
          <a
            key={each}
            href={here.to(extra(extra(view, "sort", null), "tab", each || null))}
            aria-current={each === tab ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab !== "lines" && view.extra.why && (
        <Why
          list={tab === "topics" ? "/topic-attributions" : "/chargebacks"}
          asked={view.extra.why}
          currency={currency}
        />
      )}
      {tab === "lines" ? (
        <Lines asked={asked} currency={currency} />
      ) : tab === "topics" ? (
        <TopicRows asked={asked} currency={currency} />
      ) : (
        <Charges asked={asked} currency={currency} />
      )}
    </>
  );
}
