import { type UseMutationResult, useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { documentOf, isShaped, readCategory, saveCategory, useDryRun } from "../../api/categories";
import { asProblem, type Mistake } from "../../api/problems";
import { go, useHere } from "../../app/router";
import { inTime } from "../../format/days";
import { dimension } from "../../format/names";
import { Card } from "../../ui/card";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { CATEGORIES } from "../../url/link";
import {
  assignWords,
  type CategoryDocument,
  formOf,
  matchWords,
  moved,
  nameIn,
  parsed,
  type Rule,
  ruleAt,
  valuesOf,
  written,
} from "./document";
import { EffectOf } from "./effect";
import { RuleFields } from "./ruleform";

/** The rule whose form is open. */
type Open = number | "new" | null;

/** What an edit begins with: a version of a category, or nothing yet (`etag` null). */
export interface Start {
  key: string;
  document: CategoryDocument;
  etag: string | null;
  version: number | null;
}

interface Props {
  start: Start;
  onDone: () => void;
}

/** Change the rules of a category, or its whole document; what would change is shown before anything is saved. */
export function Editor({ start, onDone }: Props) {
  const here = useHere();
  const name = here.tenant ?? "";
  const client = useQueryClient();
  const [base, setBase] = useState(start);
  const [key, setKey] = useState(start.key);
  const [document, setDocument] = useState(start.document);
  // The text while the document is edited as JSON; null while its rules are.
  const [text, setText] = useState<string | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const [checked, setChecked] = useState<CategoryDocument | null>(null);
  const [kept, setKept] = useState<CategoryDocument | null>(null);
  const [open, setOpen] = useState<Open>(null);
  useFocusOnMain();
  const trial = useDryRun(name, key, checked, here.view);
  const mistakes = checked && trial.isError ? asProblem(trial.error).errors : [];

  const save = useMutation({
    mutationFn: (reason: string) => saveCategory(name, key, checked ?? document, reason, base.etag),
    onSuccess: async () => {
      await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "dry run" });
      onDone();
      if (!start.key || start.etag === null)
        go(here.to({ ...here.view, extra: {} }, `${CATEGORIES}/${encodeURIComponent(key)}`));
    },
  });
  const change = (next: CategoryDocument) => {
    setDocument(next);
    setChecked(null);
    save.reset();
  };
  /** The document as it is typed; null if the text is none. */
  const typed = (): CategoryDocument | null => {
    if (text === null) return document;
    const found = parsed(text);
    setWrong("wrong" in found ? found.wrong : null);
    return "wrong" in found ? null : found.document;
  };
  const show = (next: CategoryDocument) => {
    change(next);
    if (text !== null) setText(written(next));
  };
  const loadTheirs = useMutation({
    mutationFn: () => readCategory(name, key),
    onSuccess: ({ body, etag }) => {
      setKept(document);
      setBase({ key, document: documentOf(body), etag, version: body.version });
      show(documentOf(body));
    },
  });

  const busy = open !== null && text === null;
  const toText = () => {
    setOpen(null);
    setText(written(document));
  };
  const toRules = () => {
    const found = typed();
    if (found === null) return;
    if (!isShaped(found)) return setWrong("The rules should be a list of objects that each have a match.");
    change(found);
    setText(null);
  };
  const check = () => {
    const found = typed();
    if (found === null) return;
    setDocument(found);
    setChecked(found);
  };

  return (
    <Card
      title={base.etag === null ? "New cost category" : `Change ${dimension(`category:${key}`)}`}
      note={base.version === null ? undefined : `on top of version ${base.version}`}
      action={
        <>
          <fieldset className="segments">
            <legend className="sr">Edit</legend>
            <button type="button" aria-current={text === null ? "true" : undefined} onClick={toRules}>
              Rules
            </button>
            <button type="button" aria-current={text === null ? undefined : "true"} onClick={toText}>
              Whole document
            </button>
          </fieldset>
          <button type="button" className="button plain" onClick={onDone}>
            Close without saving
          </button>
        </>
      }
    >
      <div className="stack">
        {kept && (
          <p className="banner" role="status">
            <span>What you see is version {base.version}. Your own document is kept.</span>
            <span className="fill" />
            <button
              type="button"
              className="button"
              onClick={() => {
                setKept(document);
                show(kept);
              }}
            >
              Swap with your own
            </button>
          </p>
        )}
        {start.etag === null && (
          <div className="form">
            <label>
              Key of the category
              <input
                className="field"
                value={key}
                required
                maxLength={64}
                pattern="[A-Za-z][A-Za-z0-9_\-]*"
                autoComplete="off"
                onChange={(event) => {
                  setKey(event.target.value.trim());
                  setChecked(null);
                }}
              />
            </label>
          </div>
        )}
        {text === null ? (
          <Rules document={document} mistakes={mistakes} onChange={change} open={open} setOpen={setOpen} />
        ) : (
          <label className="document">
            The document as JSON: default, values, rules and share
            <textarea
              className="field"
              rows={24}
              spellCheck={false}
              value={text}
              aria-invalid={wrong !== null}
              onChange={(event) => {
                setText(event.target.value);
                setWrong(null);
                setChecked(null);
              }}
            />
          </label>
        )}
        {wrong && (
          <p role="alert" className="bad">
            {wrong}
          </p>
        )}
        {checked === null ? (
          <p className="tools">
            <button
              type="button"
              className="button primary"
              disabled={busy || !/^[A-Za-z][\w-]{0,63}$/.test(key)}
              onClick={check}
            >
              Show what changes
            </button>
            <span className="note">
              {busy ? "Add the rule or cancel it first." : "Nothing is saved before you have seen it."}
            </span>
          </p>
        ) : mistakes.length > 0 ? (
          <Refused mistakes={mistakes} />
        ) : (
          <Answered query={trial} skeleton={<Bone height={10} />}>
            {(effect) => (
              <>
                <EffectOf effect={effect} document={checked} />
                <Save save={save} />
              </>
            )}
          </Answered>
        )}
        {save.isError && (
          <Failed
            error={save.error}
            onTheirs={base.etag !== null || asProblem(save.error).status === 412 ? () => loadTheirs.mutate() : null}
          />
        )}
        {loadTheirs.isError && (
          <p role="alert" className="bad">
            {asProblem(loadTheirs.error).detail}
          </p>
        )}
      </div>
    </Card>
  );
}

/** Keys go on from the beginning of the page when what had the focus has gone with what was there before. */
function useFocusOnMain(): void {
  useEffect(() => {
    const main = window.document.querySelector<HTMLElement>("main");
    main?.focus({ preventScroll: true });
    return () => main?.focus({ preventScroll: true });
  }, []);
}

/** Why it was not saved; where somebody else was faster, a way to see theirs and keep one's own. */
export function Failed({ error, onTheirs }: { error: unknown; onTheirs: (() => void) | null }) {
  const { status, title, detail } = asProblem(error);
  return (
    <div className="banner bad" role="alert">
      <span>
        <b>{title}.</b> {detail}
      </span>
      <span className="fill" />
      {status === 412 && onTheirs && (
        <button type="button" className="button" onClick={onTheirs}>
          Load theirs, keep mine
        </button>
      )}
    </div>
  );
}

/** What is wrong with a document, place by place. */
export function Refused({ mistakes }: { mistakes: readonly Mistake[] }) {
  return (
    <div role="alert">
      <p className="bad">The document is refused.</p>
      <ul className="plain-list small">
        {mistakes.map((each) => (
          <li key={`${each.parameter} ${each.message}`}>
            <code>{each.parameter.replace(/^document\./, "")}</code>: {each.message}
          </li>
        ))}
      </ul>
    </div>
  );
}

export function Save({ save }: { save: Pick<UseMutationResult<unknown, Error, string>, "isPending" | "mutate"> }) {
  const [reason, setReason] = useState("");
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(reason.trim());
      }}
    >
      <label>
        Reason of the change
        <input
          className="field"
          maxLength={2000}
          value={reason}
          placeholder="optional, kept in the history"
          onChange={(event) => setReason(event.target.value)}
        />
      </label>
      <button type="submit" className="button primary" disabled={save.isPending}>
        Save
      </button>
    </form>
  );
}

interface RulesProps {
  document: CategoryDocument;
  mistakes: readonly Mistake[];
  onChange: (document: CategoryDocument) => void;
  open: Open;
  setOpen: (open: Open) => void;
}

/** The rules in their order: to change, to move, to remove, and new ones. */
function Rules({ document, mistakes, onChange, open, setOpen }: RulesProps) {
  const add = useRef<HTMLButtonElement>(null);
  const [told, setTold] = useState("");
  const rules = document.rules ?? [];
  const put = (next: readonly Rule[], what: string) => {
    setOpen(null);
    setTold(what);
    onChange({ ...document, rules: next });
  };
  // The button that opened the form may be gone: the one for the next rule is always there.
  const close = () => {
    setOpen(null);
    requestAnimationFrame(() => add.current?.focus());
  };
  const values = valuesOf(document);
  const called = (rule: Rule, index: number) => `rule ${index + 1}${rule.id ? `, ${rule.id}` : ""}`;
  return (
    <>
      {rules.length > 0 ? (
        <Table className="tall" label="Rules to edit" heads={["Rule", "Where", "Value", "When and why", "Change"]}>
          {rules.map((rule, index) => {
            const simple = formOf(rule) !== null;
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: rules need no id; their place is their name
              <tr key={index}>
                <th scope="row" className="num">
                  {index + 1}
                  {rule.id && <span className="quiet small"> {rule.id}</span>}
                </th>
                <td className="wordy">
                  {matchWords(rule.match)}
                  {mistakes
                    .filter((each) => ruleAt(each.parameter) === index)
                    .map((each) => (
                      <span className="bad small block" key={`${each.parameter} ${each.message}`}>
                        {each.message}
                      </span>
                    ))}
                </td>
                <td>{assignWords(rule, (value) => nameIn(document, value))}</td>
                <td className="quiet small">
                  {inTime(rule).trim() || "always"}
                  {rule.reason && `; ${rule.reason}`}
                </td>
                <td>
                  <span className="row-tools">
                    {simple ? (
                      <button type="button" className="more" onClick={() => setOpen(index)}>
                        Change<span className="sr"> {called(rule, index)}</span>
                      </button>
                    ) : (
                      <span className="quiet small">in the document</span>
                    )}
                    <button
                      type="button"
                      className="more"
                      disabled={index === 0}
                      onClick={() => put(moved(rules, index, index - 1), `Now at place ${index}`)}
                    >
                      Up<span className="sr"> {called(rule, index)}</span>
                    </button>
                    <button
                      type="button"
                      className="more"
                      disabled={index === rules.length - 1}
                      onClick={() => put(moved(rules, index, index + 1), `Now at place ${index + 2}`)}
                    >
                      Down<span className="sr"> {called(rule, index)}</span>
                    </button>
                    <button
                      type="button"
                      className="more"
                      onClick={() => {
                        put(
                          rules.filter((_, n) => n !== index),
                          "Removed",
                        );
                        close();
                      }}
                    >
                      Remove<span className="sr"> {called(rule, index)}</span>
                    </button>
                  </span>
                </td>
              </tr>
            );
          })}
        </Table>
      ) : (
        <p className="note">There are no rules: everything is not assigned.</p>
      )}
      <p className="sr" role="status">
        {told}
      </p>
      {open === null ? (
        <p className="tools">
          <button ref={add} type="button" className="button" onClick={() => setOpen("new")}>
            Add a rule
          </button>
          <span className="note">A new rule stands first; the first that matches decides.</span>
        </p>
      ) : (
        <RuleFields
          key={open}
          {...(open === "new" || !rules[open] ? {} : { rule: rules[open] })}
          values={values}
          onCancel={close}
          onDone={(rule) => {
            if (open === "new") put([rule, ...rules], "Added at place 1");
            else
              put(
                rules.map((each, n) => (n === open ? rule : each)),
                "Changed",
              );
            close();
          }}
        />
      )}
    </>
  );
}
