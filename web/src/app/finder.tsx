import { useState } from "preact/compat";
import { missing, present } from "../api/answer";
import { useAccess } from "../api/me";
import { useSearch, useTenant, useViews } from "../api/questions";
import type { Found } from "../api/shapes";
import { range } from "../format/days";
import { money } from "../format/money";
import { dimension, label, type } from "../format/names";
import { download, rowsFile } from "../ui/csv";
import { Drawer } from "../ui/drawer";
import { matches } from "../ui/filters";
import { useLater } from "../ui/later";
import { type Choice, Picker } from "../ui/picker";
import { HOME, MONTH_END } from "../url/link";
import { resolve } from "../url/period";
import { readView, type View } from "../url/view";
import { say } from "../words/say";
import { addressOf, pagesFor } from "./pages";
import { go, useHere } from "./router";
import { useCanRun, useRun, useStartRun } from "./run";

/** What can be found: each leads to an address, or to a file; what can be done is done on the way. */
interface Place extends Choice {
  href: string;
  file?: string;
  does?: () => void;
}

/** Find an identity, a resource, a topic, a tag, a cost centre, a saved view, a page or something to do by any part of its
 * name or id. */
export function Finder({ onClose }: { onClose: () => void }) {
  const here = useHere();
  const { view } = here;
  const tenant = here.tenant ?? "";
  const [text, setText] = useState("");
  const asked = useLater(text.trim(), 150);
  const answer = useSearch(tenant, view, asked);
  const last = present(useTenant(tenant))?.last_date;
  const views = present(useViews(tenant))?.items ?? [];
  const found = asked && answer.known ? answer.known.data : null;
  const named = <T extends { name: string }>(all: readonly T[]) => all.filter((each) => matches(each.name, text));
  const pages = pagesFor(useAccess(tenant)).map((each) => ({ page: each.page, name: each.title }));
  const actions = useActions(tenant);
  const unknown = missing(answer);
  const choices: Place[] = [
    ...(found?.items.map((each) => ({ ...choice(each, found.currency), href: here.to(...destination(each, view)) })) ??
      []),
    ...named(views).map(({ id, name, page, query }) => {
      return { key: `view ${id}`, name, note: say("saved view"), href: here.to(readView(query), addressOf(page)) };
    }),
    ...named(pages).map(({ page, name }) => {
      return { key: `page ${page}`, name, note: say("page"), href: here.to({ ...view, extra: {} }, page) };
    }),
    ...named(actions),
  ];
  const dates = found ? { start: found.start_date, end: found.end_date } : last ? resolve(view, last) : null;
  return (
    <Drawer title={say("Find anything")} kind="finder" onClose={onClose}>
      <Picker
        label={say("Find anything")}
        placeholder={say("An identity, a resource, a topic, a cost centre, a tag, a view, a page, something to do …")}
        text={text}
        onText={setText}
        choices={choices}
        onChoose={({ href, file, does }) => {
          onClose();
          does?.();
          if (file) download({ href, name: file });
          else go(href);
        }}
        empty={
          !unknown
            ? say("Nothing has this name.")
            : unknown.why === "loading"
              ? say("Looking …")
              : say("The search has no answer.")
        }
      />
      {dates && (
        <p className="note">
          {say("Amounts are those of {dates}, without filters.", { dates: range(dates.start, dates.end) })}
        </p>
      )}
    </Drawer>
  );
}

/** What this reader can do, whatever page is shown. */
function useActions(tenant: string): Place[] {
  const { view, to } = useHere();
  const { may, seesAll } = useAccess(tenant);
  const { isOn } = useRun(tenant);
  const canRun = useCanRun(tenant);
  const start = useStartRun(tenant);
  const at = (page: string) => to({ ...view, extra: {} }, page);
  const { href: rows, name: file } = rowsFile(tenant, view, "costs");
  const actions: (Omit<Place, "key" | "note"> | false | undefined)[] = [
    canRun && !isOn && { name: say("Run now"), href: at("days"), does: () => start.mutate({}) },
    may("run") && { name: say("Recalculate days"), href: at("days") },
    may("export") && { name: say("Export these rows as CSV"), href: rows, file },
    may("admin") && seesAll && { name: say("Assign what has no owner"), href: at("unowned") },
    may("close") && seesAll && { name: say("Close a month"), href: at(MONTH_END) },
  ];
  return actions.flatMap((each) => (each ? [{ ...each, key: `do ${each.name}`, note: say("action") }] : []));
}

function choice(found: Found, currency: string): Choice {
  const by = byOf(found);
  const kind = found.kind === "tag" || found.kind === "category" ? dimension(by) : type(found.type ?? found.kind);
  return {
    key: `${by} ${found.id} ${found.parent_id}`,
    name: label(by, found.id, found.name).name,
    note: [kind, found.amount && money(found.amount, currency)].filter(Boolean).join(" · "),
  };
}

/** What something that was found is a value of. */
function byOf({ kind, type }: Found): string {
  if (kind === "tag" || kind === "category") return `${kind}:${type}`;
  return kind === "identity" ? "identity_id" : "resource_id";
}

function destination(found: Found, view: View): [View, string] {
  const { period, start, end } = view;
  const whole = { ...readView(""), period, start, end };
  if (found.type === "kafka_topic")
    return [{ ...whole, extra: { topic: found.name ?? found.id, cluster: found.parent_id ?? "" } }, "topics"];
  const filters = [{ key: byOf(found), value: found.id, not: false }];
  return [{ ...whole, filters }, found.kind === "category" ? HOME : "item"];
}
