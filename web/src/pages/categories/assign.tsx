import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { missing, TRIAL } from "../../api/answer";
import { type Because, documentOf, readCategory, saveCategory, useCategory, useDryRun } from "../../api/categories";
import type { Versioned } from "../../api/client";
import type { Category } from "../../api/shapes";
import { useHere } from "../../app/router";
import { dimension, label, NOBODY } from "../../format/names";
import { texts } from "../../ui/form";
import { Answered, Bone } from "../../ui/states";
import { begun, type Match, nameIn, type Rule, valuesOf, withRule } from "./document";
import { Failed, Refused } from "./editor";
import { EffectOf } from "./effect";

/** Who, or what without an owner, is to get a value. */
export interface Subject {
  kind: "identity" | "resource";
  id: string;
  name: string | null;
}

const KINDS: Record<Subject["kind"], string> = {
  identity: "Not assigned",
  resource: "No owner",
};

interface Props {
  categories: readonly string[];
  subjects: readonly Subject[];
  /** The one that is chosen at first; without it, all of them are meant. */
  first?: string;
}

interface Chosen {
  key: string;
  rules: readonly Rule[];
  reason: string;
}

/** Give identities, or what resources have without an owner, a value from a day on: rules before all others. */
export function Assign({ categories, subjects, first }: Props) {
  const { tenant } = useHere();
  const [key, setKey] = useState(categories[0] ?? "");
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const category = useCategory(tenant ?? "", key);
  const document = category.known ? documentOf(category.known.data.body) : {};
  const list = useId();
  const kinds = [...new Set(subjects.map((each) => each.kind))];

  const preview = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { subject, value, from, reason } = texts(event.currentTarget, "subject", "value", "from", "reason");
    const meant = first === undefined ? subjects : subjects.filter((_, n) => n === Number(subject));
    const rules = kinds.flatMap((kind): Rule[] => {
      const ids = meant.filter((each) => each.kind === kind).map((each) => each.id);
      if (ids.length === 0) return [];
      const rest = { ...(from && { valid_from: from }), ...(reason && { reason }) };
      return [{ match: matchOf(kind, ids), assign: value, ...rest }];
    });
    if (rules.length) setChosen({ key, rules, reason });
  };

  return (
    <div className="stack">
      <form className="form" onSubmit={preview} onChange={() => setChosen(null)}>
        {categories.length > 1 && (
          <label>
            Cost category
            <select className="field" value={key} onChange={(event) => setKey(event.target.value)}>
              {categories.map((each) => (
                <option key={each} value={each}>
                  {dimension(`category:${each}`)}
                </option>
              ))}
            </select>
          </label>
        )}
        {first !== undefined && <WhoField subjects={subjects} first={first} />}
        <label>
          Value
          <input className="field" name="value" required maxLength={255} list={list} autoComplete="off" />
        </label>
        <datalist id={list}>
          {valuesOf(document).map((each) => (
            <option key={each} value={each}>
              {nameIn(document, each)}
            </option>
          ))}
        </datalist>
        <label>
          From
          <input className="field" name="from" type="date" />
        </label>
        <label>
          Reason
          <input className="field" name="reason" maxLength={255} />
        </label>
        <button type="submit" className="button" disabled={subjects.length === 0}>
          Show what changes
        </button>
      </form>
      <p className="note">It becomes the first rule. Without a day in From (UTC), it holds for all days.</p>
      {chosen && (
        <Answered answer={category} skeleton={<Bone height={8} />}>
          {(found) => <Preview key={JSON.stringify(chosen)} chosen={chosen} found={found} />}
        </Answered>
      )}
    </div>
  );
}

function WhoField({ subjects, first }: { subjects: readonly Subject[]; first: string }) {
  const kinds = [...new Set(subjects.map((each) => each.kind))];
  return (
    <label>
      Who
      <select
        className="field"
        name="subject"
        defaultValue={Math.max(
          0,
          subjects.findIndex((each) => each.id === first),
        )}
      >
        {kinds.map((kind) => {
          const own = subjects.flatMap((each, n) => (each.kind === kind ? [{ ...each, n }] : []));
          return (
            <optgroup key={kind} label={KINDS[kind]}>
              {own.map((each) => (
                <option key={each.id} value={each.n}>
                  {label(`${kind}_id`, each.id, each.name).name}
                </option>
              ))}
            </optgroup>
          );
        })}
      </select>
    </label>
  );
}

/** Of resources, only what has no owner is meant. */
export function matchOf(kind: Subject["kind"], ids: readonly string[]): Match {
  const exactly = { [kind]: { exact: ids } };
  return kind === "identity" ? exactly : { all: [{ identity: [NOBODY] }, exactly] };
}

function Preview({ chosen, found }: { chosen: Chosen; found: Versioned<Category> }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const client = useQueryClient();
  const [base, setBase] = useState(found);
  const [begins, setBegins] = useState<string | null>(null);
  const rules = begins === null ? chosen.rules : chosen.rules.flatMap((each) => begun(each, begins));
  const document = rules.reduceRight(withRule, documentOf(base.body));
  const trial = useDryRun(name, chosen.key, document, here.view);
  const save = useMutation({
    mutationFn: (because: Because) => saveCategory(name, chosen.key, document, because, base.etag),
    onSuccess: () => client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== TRIAL }),
  });
  const theirs = useMutation({
    mutationFn: () => readCategory(name, chosen.key),
    onSuccess: (now) => {
      setBase(now);
      save.reset();
    },
  });
  const mistakes = missing(trial)?.problem?.errors;
  if (save.isSuccess)
    return (
      <p className="banner good" role="status">
        Saved{"version" in save.data && ` as version ${save.data.version}`}.
      </p>
    );
  if (mistakes?.length) return <Refused mistakes={mistakes} />;
  return (
    <Answered answer={trial} skeleton={<Bone height={8} />}>
      {(effect) => (
        <>
          <EffectOf effect={effect} document={document} />
          <p className="tools">
            <button
              type="button"
              className="button primary"
              disabled={save.isPending}
              onClick={() => save.mutate(chosen)}
            >
              Save
            </button>
          </p>
          {save.isError && (
            <Failed
              error={save.error}
              onTheirs={() => theirs.mutate()}
              onBegin={(day) => {
                save.reset();
                setBegins(day);
              }}
              onRestate={(reason) => save.mutate({ reason, restates: true })}
            />
          )}
        </>
      )}
    </Answered>
  );
}
