import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "preact/compat";
import { askAgain, missing } from "../../api/answer";
import { type Because, documentOf, readCategory, saveCategory, useCategory, useDryRun } from "../../api/categories";
import type { Versioned } from "../../api/client";
import type { Category } from "../../api/shapes";
import { useHere } from "../../app/router";
import { label, NOBODY } from "../../format/names";
import { texts } from "../../ui/form";
import { Answered, Bone } from "../../ui/states";
import { say } from "../../words/say";
import { begun, type CategoryDocument, type Match, nameIn, type Rule, withRule } from "./document";
import { Failed, Refused } from "./editor";
import { EffectOf } from "./effect";
import { type Offer, offersOf, type Subject } from "./proposals";
import { useProposals } from "./proposing";
import { type Saved, savedOf } from "./undo";

const KINDS: Record<Subject["kind"], string> = {
  identity: say("Not assigned"),
  resource: say("No owner"),
};

interface Props {
  categoryKey: string;
  subjects: readonly Subject[];
  /** The id of the one that is chosen at first; without it, all of them are meant. */
  first?: string;
  /** Told which of the subjects a proposal is for, where it is taken and is not for all of them. */
  onNarrow?: (subjects: readonly Subject[]) => void;
  /** Told what was saved; null if the category said the same before. */
  onSaved: (saved: Saved | null) => void;
}

/** What is to be saved: rules for some subjects. */
interface Meant {
  subjects: readonly Subject[];
  rules: readonly Rule[];
  reason: string;
}

/** Give identities, or what resources have without an owner, a value from a day on: rules before all others. */
export function Assign(props: Props) {
  const { tenant } = useHere();
  const category = useCategory(tenant ?? "", props.categoryKey);
  return (
    <Answered answer={category} skeleton={<Bone height={8} />}>
      {(found) => <AssignForm {...props} found={found} />}
    </Answered>
  );
}

function AssignForm({
  categoryKey,
  subjects,
  first,
  onNarrow,
  onSaved,
  found,
}: Props & { found: Versioned<Category> }) {
  const document = useMemo(() => documentOf(found.body), [found]);
  const { propose, values } = useProposals(categoryKey, document);
  const [who, setWho] = useState(() => Math.max(0, first === undefined ? 0 : indexOf(subjects, first)));
  const [value, setValue] = useState<Given>({ text: "", isTyped: false });
  const [meant, setMeant] = useState<Meant | null>(null);
  const them = first === undefined ? subjects : subjects.slice(who, who + 1);
  const isShown = meant !== null && keysOf(meant.subjects) === keysOf(them);

  const preview = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { from, reason } = texts(event.currentTarget, "from", "reason");
    const rest = { ...(from && { valid_from: from }), ...(reason && { reason }) };
    const rules = [...Map.groupBy(them, (each) => each.kind)].map(([kind, all]): Rule => {
      const match = matchOf(
        kind,
        all.map((each) => each.id),
      );
      return { match, assign: value.text.trim(), ...rest };
    });
    setMeant({ subjects: them, rules, reason });
  };

  return (
    <div className="stack">
      <Offers
        document={document}
        offers={offersOf(them, propose)}
        all={them.length}
        onTake={(offer) => {
          setValue({ text: offer.value, isTyped: false });
          setMeant(null);
          if (offer.subjects.length < them.length) onNarrow?.(offer.subjects);
        }}
      />
      <form className="form" onSubmit={preview} onInput={() => setMeant(null)}>
        {first !== undefined && <WhoField subjects={subjects} who={who} onWho={setWho} />}
        <ValueField document={document} values={values} given={value} onGive={setValue} />
        <label>
          {say("From [a day]")}
          <input className="field" name="from" type="date" />
        </label>
        <label>
          {say("Reason")}
          <input className="field" name="reason" maxLength={255} />
        </label>
        <button type="submit" className="button" disabled={them.length === 0}>
          {say("Show what changes")}
        </button>
      </form>
      <p className="note">{say("It becomes the first rule. Without a day in From (UTC), it holds for all days.")}</p>
      {isShown && (
        <Preview key={JSON.stringify(meant)} categoryKey={categoryKey} meant={meant} found={found} onSaved={onSaved} />
      )}
    </div>
  );
}

interface OffersProps {
  document: CategoryDocument;
  offers: readonly Offer<Subject>[];
  /** How many are chosen. */
  all: number;
  onTake: (offer: Offer<Subject>) => void;
}

/** The proposals for what is chosen, to be taken. */
function Offers({ document, offers, all, onTake }: OffersProps) {
  if (offers.length === 0) return null;
  return (
    <ul className="plain-list small" aria-label={say("Proposed")}>
      {offers.map((each) => (
        <li key={each.value} className="tools">
          <button type="button" className="button" onClick={() => onTake(each)}>
            {each.subjects.length < all
              ? say("Take {value} for {some} of {all}", {
                  value: nameIn(document, each.value),
                  some: each.subjects.length,
                  all,
                })
              : say("Take {value}", { value: nameIn(document, each.value) })}
          </button>
          <span className="quiet">{each.why}</span>
        </li>
      ))}
    </ul>
  );
}

const indexOf = (subjects: readonly Subject[], id: string) => subjects.findIndex((each) => each.id === id);
const keysOf = (subjects: readonly Subject[]) => JSON.stringify(subjects.map(({ kind, id }) => [kind, id]));

function WhoField({
  subjects,
  who,
  onWho,
}: {
  subjects: readonly Subject[];
  who: number;
  onWho: (who: number) => void;
}) {
  const kinds = [...new Set(subjects.map((each) => each.kind))];
  return (
    <label>
      {say("Who")}
      <select className="field" value={who} onChange={(event) => onWho(Number(event.currentTarget.value))}>
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

/** A value that was chosen or, if the list does not have it, typed. */
interface Given {
  text: string;
  isTyped: boolean;
}

/** Stands in the list for a value that is typed: no value is blank. */
const TYPED = " ";

interface ValueProps {
  document: CategoryDocument;
  values: readonly string[];
  given: Given;
  onGive: (given: Given) => void;
}

/** Choose a value. Where values are registered, there are no others. */
function ValueField({ document, values, given, onGive }: ValueProps) {
  const registered = Object.keys(document.values ?? {});
  const offered = registered.length > 0 ? values.filter((each) => registered.includes(each)) : values;
  const isTyped = given.isTyped || offered.length === 0;
  return (
    <>
      {offered.length > 0 && (
        <label>
          {say("Value")}
          <select
            className="field"
            required
            value={isTyped ? TYPED : given.text}
            onChange={({ currentTarget: { value } }) =>
              onGive(value === TYPED ? { text: "", isTyped: true } : { text: value, isTyped: false })
            }
          >
            <option value="" disabled>
              {say("Choose a value")}
            </option>
            {offered.map((each) => (
              <option key={each} value={each}>
                {nameIn(document, each)}
              </option>
            ))}
            {registered.length === 0 && <option value={TYPED}>{say("Another value …")}</option>}
          </select>
        </label>
      )}
      {isTyped && (
        <label>
          {offered.length > 0 ? say("Another value") : say("Value")}
          <input
            className="field"
            required
            maxLength={255}
            autoComplete="off"
            value={given.text}
            onChange={(event) => onGive({ text: event.currentTarget.value, isTyped: true })}
          />
        </label>
      )}
    </>
  );
}

/** Of resources, only what has no owner is meant. */
function matchOf(kind: Subject["kind"], ids: readonly string[]): Match {
  const exactly = { [kind]: { exact: ids } };
  return kind === "identity" ? exactly : { all: [{ identity: [NOBODY] }, exactly] };
}

interface PreviewProps {
  categoryKey: string;
  meant: Meant;
  found: Versioned<Category>;
  onSaved: (saved: Saved | null) => void;
}

function Preview({ categoryKey, meant, found, onSaved }: PreviewProps) {
  const here = useHere();
  const name = here.tenant ?? "";
  const client = useQueryClient();
  const [base, setBase] = useState(found);
  const [begins, setBegins] = useState<string | null>(null);
  const rules = begins === null ? meant.rules : meant.rules.flatMap((each) => begun(each, begins));
  const before = documentOf(base.body);
  const document = rules.reduceRight(withRule, before);
  const trial = useDryRun(name, categoryKey, document, here.view);
  const save = useMutation({
    mutationFn: (because: Because) => saveCategory(name, categoryKey, document, because, base.etag),
    onSuccess: async (after) => {
      onSaved(savedOf(base, after));
      await askAgain(client);
    },
  });
  const theirs = useMutation({
    mutationFn: () => readCategory(name, categoryKey),
    onSuccess: (now) => {
      setBase(now);
      save.reset();
    },
  });
  const mistakes = missing(trial)?.problem?.errors;
  if (mistakes?.length) return <Refused mistakes={mistakes} />;
  return (
    <Answered answer={trial} skeleton={<Bone height={8} />}>
      {(effect) => (
        <>
          <EffectOf effect={effect} base={before} document={document} />
          <p className="tools">
            <button
              type="button"
              className="button primary"
              disabled={save.isPending}
              onClick={() => save.mutate(meant)}
            >
              {say("Save")}
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
