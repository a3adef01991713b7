import { useState } from "react";
import { missing } from "../api/answer";
import { useAccess } from "../api/me";
import { useSearch } from "../api/questions";
import type { Found } from "../api/shapes";
import { money } from "../format/money";
import { type } from "../format/names";
import { Drawer } from "../ui/drawer";
import { matches } from "../ui/filters";
import { useLater } from "../ui/later";
import { type Choice, Picker } from "../ui/picker";
import { readView, type View } from "../url/view";
import { pagesFor } from "./pages";
import { go, useHere } from "./router";

const KEYS: Record<string, string> = { identity: "identity_id", resource: "resource_id" };

/** Find an identity, a resource, a topic, a tag or a page by any part of its name or id. */
export function Finder({ currency, onClose }: { currency: string; onClose: () => void }) {
  const here = useHere();
  const [text, setText] = useState("");
  const asked = useLater(text.trim(), 150);
  const found = useSearch(here.tenant ?? "", asked);
  const allowed = pagesFor(useAccess(here.tenant ?? ""));
  const pages = allowed
    .filter((each) => matches(each.title, text))
    .map((each) => ({
      key: `page ${each.page}`,
      name: each.title,
      note: "page",
    }));
  const items = asked && found.known ? found.known.data.items : [];
  const unknown = missing(found);
  const choices = [...items.map((each, n) => choice(each, n, currency)), ...pages];

  const choose = ({ key }: Choice) => {
    onClose();
    const page = key.startsWith("page ") ? key.slice(5) : null;
    const item = page ? null : items[Number(key.split(" ")[0])];
    go(
      page
        ? here.to({ ...here.view, extra: {} }, page)
        : item
          ? here.to(...destination(item, here.view))
          : here.to(here.view),
    );
  };
  return (
    <Drawer title="Find anything" kind="finder" onClose={onClose}>
      <Picker
        label="Find anything"
        placeholder="An identity, a resource, a topic, a tag, a page …"
        text={text}
        onText={setText}
        choices={choices}
        onChoose={choose}
        empty={
          !unknown ? "Nothing has this name." : unknown.why === "loading" ? "Looking …" : "The search has no answer."
        }
      />
    </Drawer>
  );
}

function choice(found: Found, n: number, currency: string): Choice {
  const kind = found.kind === "tag" ? `${found.type} (tag)` : type(found.type ?? found.kind);
  const name = found.name ?? found.id;
  return {
    key: `${n} ${found.kind} ${found.id}`,
    name,
    note: [kind, found.amount && money(found.amount, currency)].filter(Boolean).join(" · "),
  };
}

function destination(found: Found, view: View): [View, string] {
  const clean = { ...view, extra: {} };
  if (found.type === "kafka_topic")
    return [
      { ...clean, filters: [], extra: { topic: found.name ?? found.id, cluster: found.parent_id ?? "" } },
      "topics",
    ];
  const key = found.kind === "tag" ? `tag:${found.type}` : (KEYS[found.kind] ?? "resource_id");
  return [
    {
      ...readView(""),
      period: view.period,
      start: view.start,
      end: view.end,
      filters: [{ key, value: found.id, not: false }],
    },
    "item",
  ];
}
