import { useState } from "preact/compat";
import { missing, present, useAnswers } from "../api/answer";
import { useRegisters } from "../api/categories";
import { entityOf } from "../api/entities";
import { GROUPS } from "../api/filters";
import { useCosts } from "../api/questions";
import type { Tenant } from "../api/shapes";
import { go, useHere } from "../app/router";
import { money } from "../format/money";
import { amid, categoryOf, dimension, isCategory, label, UNTAGGED } from "../format/names";
import { type Filter, toggle } from "../url/view";
import { say } from "../words/say";
import { Icon } from "./icons";
import { Picker } from "./picker";
import { Popover } from "./popover";
import { Warning } from "./states";

/** What the values of filters are called, as far as the inventory and the registers of cost categories have answered. */
export function useFilterNames(filters: readonly Filter[]): string[] {
  const tenant = useHere().tenant ?? "";
  const registers = useRegisters(
    tenant,
    filters.map((each) => each.key),
  );
  const entities = useAnswers(filters.map((each) => entityOf(tenant, each)));
  return filters.map(({ key, value }, n) => {
    const register = isCategory(key) ? registers.get(categoryOf(key).key) : undefined;
    return label(key, value, register?.[value]?.name ?? entities[n]?.known?.data?.display_name).name;
  });
}

export function Chips() {
  const here = useHere();
  const { view } = here;
  const names = useFilterNames(view.filters);
  return (
    <>
      {view.filters.map((each, n) => (
        <Chip
          key={`${each.not}${each.key}=${each.value}`}
          what={condition(each.key, each.not)}
          name={names[n] ?? each.value}
          without={here.to(toggle(view, each.key, each.value, each.not))}
        />
      ))}
    </>
  );
}

function condition(by: string, not: boolean): string {
  const name = dimension(by);
  return not ? say("{name} is not", { name }) : say("{name} is", { name });
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
        <span className="sr">{say("Remove: {what} {name}", { what, name })}</span>
      </a>
    </span>
  );
}

/** Says which filters of the view mean nothing for what is shown. */
export function LeftAside({ subject, keys }: { subject: string; keys: readonly string[] | undefined }) {
  if (!keys?.length) return null;
  const names = [...new Set(keys)].map((each) => amid(dimension(each)));
  return (
    <Warning>
      {say("{subject} know nothing of {names}: {n|that filter is|those filters are} left aside here.", {
        subject,
        names: names.join(", "),
        n: keys.length,
      })}
    </Warning>
  );
}

export function FilterButton({ tenant }: { tenant: Tenant | undefined }) {
  return (
    <Popover name={say("Filter")} icon="plus" plain bare shortcut="filter" label={say("Filter")}>
      {(close) => <FilterPicker keys={dimensionsOf(tenant)} close={close} />}
    </Popover>
  );
}

/** What there is to filter and to group by: cost categories and tags first. */
export function dimensionsOf(tenant: Tenant | undefined): string[] {
  const named = (tenant?.category_keys ?? []).map((key) => `category:${key}`);
  return [...named, ...(tenant?.tag_keys ?? []).map((each) => `tag:${each.key}`), ...GROUPS];
}

function FilterPicker({ keys, close }: { keys: readonly string[]; close: () => void }) {
  const [key, setKey] = useState<string | null>(null);
  const [text, setText] = useState("");
  if (key !== null) return <ValuePicker by={key} close={close} />;
  const choices = keys.map((each) => ({ key: each, name: dimension(each) }));
  return (
    <Picker
      label={say("What to filter by")}
      placeholder={say("Filter by …")}
      text={text}
      onText={setText}
      choices={choices.filter((each) => matches(each.name, text))}
      onChoose={(choice) => setKey(choice.key)}
      empty={say("Nothing has this name.")}
    />
  );
}

function ValuePicker({ by, close }: { by: string; close: () => void }) {
  const here = useHere();
  const [text, setText] = useState("");
  const [not, setNot] = useState(false);
  const view = { ...here.view, compare: "none", filters: here.view.filters.filter((each) => each.key !== by) };
  const answer = useCosts(here.tenant ?? "", view, [by], { top: 50 });
  const costs = present(answer);
  const found = costs?.breakdowns.find((each) => each.by === by);
  const choices = (found?.items ?? []).map((item) => {
    const value = item.value ?? (by.startsWith("tag:") ? UNTAGGED : "");
    const named = label(by, item.value, item.name);
    return {
      key: value,
      name: named.name,
      search: `${named.name} ${value}`,
      note: money(item.amount, costs?.currency ?? "USD"),
    };
  });
  const matching = choices.filter((each) => matches(each.search, text));
  const typed =
    text.trim() && !matching.length
      ? [{ key: text.trim(), name: say("“{text}”", { text: text.trim() }), note: say("as typed") }]
      : [];
  return (
    <>
      <Picker
        label={condition(by, not)}
        placeholder={`${condition(by, not)} …`}
        text={text}
        onText={setText}
        choices={[...matching, ...typed]}
        onChoose={(choice) => {
          close();
          go(here.to(toggle(here.view, by, choice.key, not)));
        }}
        empty={
          missing(answer)?.why === "loading"
            ? say("Asking …")
            : costs
              ? say("There is none in this period.")
              : say("There is no answer.")
        }
      />
      <hr />
      <button type="button" aria-pressed={not} onClick={() => setNot(!not)}>
        {not && <Icon name="check" />}
        {say("Leave it out instead")}
      </button>
      {found?.other && (
        <h3>{say("The {n} with the highest cost; type an id for another one", { n: choices.length })}</h3>
      )}
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
