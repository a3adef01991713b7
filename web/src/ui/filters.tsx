import { useState } from "react";
import { useCategories, useRegisters } from "../api/categories";
import { useCosts } from "../api/questions";
import type { CategoryList, Tenant } from "../api/shapes";
import { go, useHere } from "../app/router";
import { money } from "../format/money";
import { COLUMNS, categoryOf, dimension, isCategory, label, UNTAGGED } from "../format/names";
import { type Filter, filterKey, toggle } from "../url/view";
import { Icon } from "./icons";
import { Picker } from "./picker";
import { Popover } from "./popover";
import { Warning } from "./states";

/** The names of ids that were shown since the page was loaded, so that a chip shows what its filter is called. */
const seen = new Map<string, string>();

export function rememberName(by: string, value: string | null, name: string | null): void {
  if (value && name) seen.set(`${filterKey(by)} ${value}`, name);
}

export function nameOf({ key, value }: Pick<Filter, "key" | "value">): string {
  return label(key, value, seen.get(`${filterKey(key)} ${value}`)).name;
}

export function Chips() {
  const here = useHere();
  const { view } = here;
  const registers = useRegisters(
    here.tenant ?? "",
    view.filters.map((each) => each.key),
  );
  const called = ({ key, value }: Filter) =>
    (isCategory(key) && registers.get(categoryOf(key).key)?.[value]?.name) || nameOf({ key, value });
  return (
    <>
      {view.filters.map((each) => (
        <Chip
          key={`${each.not}${each.key}=${each.value}`}
          what={`${dimension(each.key)} is${each.not ? " not" : ""}`}
          name={called(each)}
          without={here.to(toggle(view, each.key, each.value, each.not))}
        />
      ))}
    </>
  );
}

/** A condition of the view, and the way to the view without it. */
export function Chip({ what, name, without }: { what: string; name: string; without: string }) {
  return (
    <span className="chip">
      <span className="cut">
        {what} <b>{name}</b>
      </span>
      <a href={without}>
        <Icon name="close" />
        <span className="sr">
          Remove: {what} {name}
        </span>
      </a>
    </span>
  );
}

/** Says which filters of the view mean nothing for what is shown. */
export function LeftAside({ subject, keys }: { subject: string; keys: readonly string[] }) {
  if (keys.length === 0) return null;
  const names = [...new Set(keys)].map((each) => dimension(each).toLowerCase()).join(", ");
  return (
    <Warning>
      {subject} know nothing of {names}: {keys.length === 1 ? "that filter is" : "those filters are"} left aside here.
    </Warning>
  );
}

export function FilterButton({ tenant }: { tenant: Tenant | undefined }) {
  const here = useHere();
  const categories = useCategories(here.tenant ?? "").data;
  return (
    <Popover name="Filter" icon="plus" plain bare shortcut="filter" label="Filter">
      {(close) => <FilterPicker keys={dimensionsOf(tenant, categories)} close={close} />}
    </Popover>
  );
}

/** What there is to filter and to group by: cost categories and tags first. */
export function dimensionsOf(tenant: Tenant | undefined, categories: CategoryList | undefined): string[] {
  const named = (categories?.items ?? []).map((each) => `category:${each.key}`);
  return [...named, ...(tenant?.tag_keys ?? []).map((each) => `tag:${each.key}`), ...COLUMNS];
}

function FilterPicker({ keys, close }: { keys: readonly string[]; close: () => void }) {
  const [key, setKey] = useState<string | null>(null);
  const [text, setText] = useState("");
  if (key !== null) return <ValuePicker by={key} close={close} />;
  const choices = keys.map((each) => ({ key: each, name: dimension(each) }));
  return (
    <Picker
      label="What to filter by"
      placeholder="Filter by …"
      text={text}
      onText={setText}
      choices={choices.filter((each) => matches(each.name, text))}
      onChoose={(choice) => setKey(choice.key)}
      empty="Nothing has this name."
    />
  );
}

function ValuePicker({ by, close }: { by: string; close: () => void }) {
  const here = useHere();
  const [text, setText] = useState("");
  const [not, setNot] = useState(false);
  const view = { ...here.view, compare: "none", filters: here.view.filters.filter((each) => each.key !== by) };
  const query = useCosts(here.tenant ?? "", view, [by], by, [["top", "50"]]);
  const found = query.data?.breakdowns.find((each) => each.by === by);
  const register = useRegisters(here.tenant ?? "", [by]).get(categoryOf(by).key) ?? {};
  const choices = (found?.items ?? []).map((item) => {
    const name = isCategory(by) ? (register[item.value ?? ""]?.name ?? null) : item.name;
    rememberName(by, item.value, name);
    const value = item.value ?? (by.startsWith("tag:") ? UNTAGGED : "");
    const named = label(by, item.value, name);
    return {
      key: value,
      name: named.name,
      search: `${named.name} ${value}`,
      note: money(item.amount, query.data?.currency ?? "USD"),
    };
  });
  const matching = choices.filter((each) => matches(each.search, text));
  const typed =
    text.trim() && !matching.length ? [{ key: text.trim(), name: `“${text.trim()}”`, note: "as typed" }] : [];
  return (
    <>
      <Picker
        label={`${dimension(by)} ${not ? "is not" : "is"}`}
        placeholder={`${dimension(by)} ${not ? "is not" : "is"} …`}
        text={text}
        onText={setText}
        choices={[...matching, ...typed]}
        onChoose={(choice) => {
          close();
          go(here.to(toggle(here.view, by, choice.key, not)));
        }}
        empty={query.isPending ? "Asking …" : "There is none in this period."}
      />
      <hr />
      <button type="button" aria-pressed={not} onClick={() => setNot(!not)}>
        {not && <Icon name="check" />}
        Leave it out instead
      </button>
      {found?.other && <h3>The {choices.length} with the highest cost; type an id for another one</h3>}
    </>
  );
}

export function matches(name: string, text: string): boolean {
  const low = name.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((each) => low.includes(each));
}
