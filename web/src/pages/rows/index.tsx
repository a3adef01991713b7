import { tenantPath, useTenant } from "../../api/questions";
import { useHere } from "../../app/router";
import { instant } from "../../format/days";
import { Chip, LeftAside } from "../../ui/filters";
import { Toolbar } from "../../ui/toolbar";
import { isMoment } from "../../url/moment";
import { apiQuery, extra, type Filter, type View } from "../../url/view";
import { Charges } from "./charges";
import { Lines } from "./lines";
import { TopicRows } from "./topics";

/** A kind of rows: what the API calls the list, the filters that it has, and what the page calls it. */
interface Kind {
  list: string;
  file: string;
  name: string;
  subject: string;
  has: (filter: Filter) => boolean;
  /** What only this kind is narrowed by: the page's word, and the API's. */
  more: Readonly<Record<string, string>>;
}

const OF_LINES = ["product_type", "product_category", "resource_id", "environment_id"];
const CHARGES: Kind = {
  list: "chargebacks",
  file: "rows",
  name: "Charges",
  subject: "Charges",
  has: () => true,
  more: { line_id: "line_id" },
};
const KINDS: Record<string, Kind> = {
  lines: {
    list: "billing",
    file: "bill-lines",
    name: "Bill lines",
    subject: "Bill lines",
    has: ({ key }) => OF_LINES.includes(key) || key.startsWith("tag:"),
    more: { line_id: "line_id" },
  },
  topics: {
    list: "topic-attributions",
    file: "topic-rows",
    name: "Topics",
    subject: "Topics",
    has: ({ key }) => ["product_type", "product_category"].includes(key) || key.startsWith("tag:"),
    more: { line_id: "line_id", cluster: "cluster_resource_id", topic: "topic_name" },
  },
};
const CHIPS: Record<string, string> = { line_id: "Bill line is", cluster: "Cluster is", topic: "Topic is" };

/** Every share of every billing line, the lines themselves, or the parts of topics, to the last digit. */
export function RowsPage() {
  const here = useHere();
  const { view } = here;
  const name = here.tenant ?? "";
  const tenant = useTenant(name).data;
  const currency = tenant?.currency ?? "";
  const tab = view.extra.tab ?? "";
  const kind = KINDS[tab] ?? CHARGES;
  const [kept, ignored] = parted(view, kind);
  const narrowed = Object.entries(kind.more).flatMap(([word, column]) => {
    const value = view.extra[word];
    return value ? [{ word, column, value }] : [];
  });
  const then = view.extra.as_of && isMoment(view.extra.as_of) ? view.extra.as_of : null;
  const query = [
    ...apiQuery(kept, { compare: false }),
    ...narrowed.map(({ column, value }) => [column, value] as const),
    ...(then ? [["as_of", then] as const] : []),
  ];
  const file = { path: tenantPath(name, `${kind.list}.csv`), query, name: `${name}-${kind.file}.csv` };
  const tabs = Object.entries({ "": CHARGES, ...KINDS }).filter(
    ([each]) => each !== "topics" || tab === "topics" || tenant?.features.topics,
  );
  return (
    <>
      <Toolbar compare={false} file={file}>
        {narrowed.map(({ word, value }) => (
          <Chip key={word} what={CHIPS[word] ?? word} name={value} without={here.to(extra(view, word, null))} />
        ))}
        {then && <Chip what="As it was" name={instant(then)} without={here.to(extra(view, "as_of", null))} />}
      </Toolbar>
      <nav className="segments tabs" aria-label="Kind of rows">
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
      <LeftAside subject={kind.subject} keys={ignored} />
      {tab === "lines" ? (
        <Lines query={query} currency={currency} />
      ) : tab === "topics" ? (
        <TopicRows query={query} currency={currency} />
      ) : (
        <Charges query={query} currency={currency} />
      )}
    </>
  );
}

/** A view with the filters that a kind of rows has, and the keys of the others. */
function parted(view: View, { has }: Kind): [View, string[]] {
  return [
    { ...view, filters: view.filters.filter(has) },
    view.filters.filter((each) => !has(each)).map((each) => each.key),
  ];
}
