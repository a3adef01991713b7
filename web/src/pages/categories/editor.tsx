import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useReducer, useRef, useState } from "preact/compat";
import { askAgain, missing } from "../../api/answer";
import { type Because, readCategory, saveCategory, useDryRun } from "../../api/categories";
import { useAccess } from "../../api/me";
import { asProblem, type Mistake } from "../../api/problems";
import { go, useHere, useLeaving } from "../../app/router";
import { inTime } from "../../format/days";
import { dimension } from "../../format/names";
import { Card } from "../../ui/card";
import { ReachesClosed } from "../../ui/closed";
import { texts } from "../../ui/form";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { CATEGORIES } from "../../url/link";
import { say } from "../../words/say";
import { Condition } from "./condition";
import {
  assignWords,
  beginningOn,
  type CategoryDocument,
  formOf,
  moved,
  nameIn,
  type Rule,
  ruleAt,
  valuesOf,
} from "./document";
import { begin, edit, isChanged, type Open, type Start, startOf } from "./editing";
import { EffectOf } from "./effect";
import { RuleFields } from "./ruleform";
import { TryOn } from "./tryon";

interface Props {
  start: Start;
  onDone: () => void;
}

const LOST = say("What you have changed is not saved. Leave it?");

/** Change the rules of a category, or its whole document; what would change is shown before anything is saved. */
export function Editor({ start, onDone }: Props) {
  const here = useHere();
  const name = here.tenant ?? "";
  const { may } = useAccess(name);
  const client = useQueryClient();
  const [state, dispatch] = useReducer(edit, start, begin);
  const { stage, base, key, document, text, wrong, open, kept, refusal, lost } = state;
  useFocusOnMain();
  useLeaving(isChanged(state) && stage !== "saving" ? LOST : null);
  const previewed = stage === "editing" ? null : document;
  const trial = useDryRun(name, key, previewed, here.view);
  const mistakes = (previewed && missing(trial)?.problem?.errors) || [];
  const failed = (error: unknown) => dispatch({ type: "failed", error });

  const save = async (because: Because) => {
    dispatch({ type: "save" });
    try {
      await saveCategory(name, key, document, because, base.etag);
    } catch (error) {
      return failed(error);
    }
    await askAgain(client);
    onDone();
    if (start.etag === null) go(here.to({ ...here.view, extra: {} }, `${CATEGORIES}/${encodeURIComponent(key)}`));
  };
  const loadTheirs = () => {
    dispatch({ type: "load" });
    readCategory(name, key).then((found) => dispatch({ type: "loaded", theirs: startOf(found) }), failed);
  };
  const reaching = refusal === null ? null : asProblem(refusal).reaching;
  const later = reaching && beginningOn(reaching.begins, base.document, document);
  const postpone = (document: CategoryDocument) => {
    dispatch({ type: "change", document });
    dispatch({ type: "preview" });
  };
  const busy = open !== null && text === null;

  return (
    <Card
      title={
        base.etag === null
          ? say("New cost category")
          : say("Change {category}", { category: dimension(`category:${key}`) })
      }
      note={base.version === null ? undefined : say("on top of version {version}", { version: `${base.version}` })}
      action={
        <>
          <fieldset className="segments">
            <legend className="sr">{say("Edit")}</legend>
            <button
              type="button"
              aria-current={text === null ? "true" : undefined}
              onClick={() => dispatch({ type: "as rules" })}
            >
              {say("Rules")}
            </button>
            <button
              type="button"
              aria-current={text === null ? undefined : "true"}
              onClick={() => dispatch({ type: "as text" })}
            >
              {say("Whole document")}
            </button>
          </fieldset>
          <button type="button" className="button plain" onClick={onDone}>
            {say("Close without saving")}
          </button>
        </>
      }
    >
      <div className="stack">
        {kept && (
          <p className="banner" role="status">
            <span>
              {say("What you see is version {version}. Your own document is kept.", { version: `${base.version}` })}
            </span>
            <span className="fill" />
            <button type="button" className="button" onClick={() => dispatch({ type: "swap" })}>
              {say("Swap with your own")}
            </button>
          </p>
        )}
        {start.etag === null && (
          <div className="form">
            <label>
              {say("Key of the category")}
              <input
                className="field"
                value={key}
                required
                maxLength={64}
                pattern="[A-Za-z][A-Za-z0-9_\-]*"
                autoComplete="off"
                onChange={(event) => dispatch({ type: "name", key: event.currentTarget.value.trim() })}
              />
            </label>
          </div>
        )}
        {text === null ? (
          <Rules
            document={document}
            mistakes={mistakes}
            onChange={(next) => dispatch({ type: "change", document: next })}
            open={open}
            setOpen={(rule) => dispatch({ type: "open", open: rule })}
          />
        ) : (
          <label className="document">
            {say("The document as JSON: default, values, rules and share")}
            <textarea
              className="field"
              rows={24}
              spellcheck={false}
              value={text}
              aria-invalid={wrong !== null}
              onChange={(event) => dispatch({ type: "type", text: event.currentTarget.value })}
            />
          </label>
        )}
        {wrong && (
          <p role="alert" className="bad">
            {wrong}
          </p>
        )}
        {previewed === null ? (
          <p className="tools">
            <button
              type="button"
              className="button primary"
              disabled={busy || !/^[A-Za-z][\w-]{0,63}$/.test(key)}
              onClick={() => dispatch({ type: "preview" })}
            >
              {say("Show what changes")}
            </button>
            <span className="note">
              {busy ? say("Add the rule or cancel it first.") : say("Nothing is saved before you have seen it.")}
            </span>
          </p>
        ) : mistakes.length > 0 ? (
          <Refused mistakes={mistakes} />
        ) : (
          <Answered answer={trial} skeleton={<Bone height={10} />}>
            {(effect) => (
              <>
                <EffectOf effect={effect} base={base.document} document={previewed} />
                {may("run") && <TryOn tenant={name} category={key} document={previewed} view={here.view} />}
                <Save isSaving={stage === "saving"} onSave={save} />
              </>
            )}
          </Answered>
        )}
        {refusal !== null && (
          <Failed
            error={refusal}
            onTheirs={base.etag !== null || asProblem(refusal).status === 412 ? loadTheirs : null}
            onBegin={later ? () => postpone(later) : undefined}
            onRestate={(reason) => save({ reason, restates: true })}
          />
        )}
        {lost !== null && (
          <p role="alert" className="bad">
            {asProblem(lost).detail}
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

interface FailedProps {
  error: unknown;
  onTheirs: (() => void) | null;
  onBegin: ((day: string) => void) | undefined;
  onRestate: (reason: string) => void;
}

/** Why it was not saved; where somebody else was faster, a way to see theirs and keep one's own. */
export function Failed({ error, onTheirs, onBegin, onRestate }: FailedProps) {
  const { status, title, detail, reaching } = asProblem(error);
  if (reaching) return <ReachesClosed of={reaching} onBegin={onBegin} onRestate={onRestate} isPending={false} />;
  return (
    <div className="banner bad" role="alert">
      <span>
        <b>{title}.</b> {detail}
      </span>
      <span className="fill" />
      {status === 412 && onTheirs && (
        <button type="button" className="button" onClick={onTheirs}>
          {say("Load theirs, keep mine")}
        </button>
      )}
    </div>
  );
}

/** What is wrong with a document, place by place. */
export function Refused({ mistakes }: { mistakes: readonly Mistake[] }) {
  return (
    <div role="alert">
      <p className="bad">{say("The document is refused.")}</p>
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

function Save({ isSaving, onSave }: { isSaving: boolean; onSave: (because: Because) => void }) {
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        onSave(texts(event.currentTarget, "reason"));
      }}
    >
      <label>
        {say("Reason of the change")}
        <input className="field" name="reason" maxLength={2000} placeholder={say("optional, kept in the history")} />
      </label>
      <button type="submit" className="button primary" disabled={isSaving}>
        {say("Save")}
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
  const { rules = [] } = document;
  const put = (next: readonly Rule[], what: string) => {
    setTold(what);
    onChange({ ...document, rules: next });
  };
  // The button that opened the form may be gone: the one for the next rule is always there.
  const close = () => {
    setOpen(null);
    requestAnimationFrame(() => add.current?.focus());
  };
  const values = valuesOf(document);
  const called = ({ id }: Rule, index: number) =>
    say("rule {number}", { number: `${index + 1}` }) + (id ? `, ${id}` : "");
  return (
    <>
      {rules.length > 0 ? (
        <Table
          className="tall"
          label={say("Rules to edit")}
          heads={[
            say("Rule"),
            say("Where [the condition of a rule]"),
            say("Value"),
            say("When and why"),
            say("Change [to edit]"),
          ]}
        >
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
                  <Condition match={rule.match} />
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
                  {inTime(rule).trim() || say("always")}
                  {rule.reason && `; ${rule.reason}`}
                </td>
                <td>
                  <span className="row-tools">
                    {simple ? (
                      <button type="button" className="more" onClick={() => setOpen(index)}>
                        {say("Change [to edit]")}
                        <span className="sr"> {called(rule, index)}</span>
                      </button>
                    ) : (
                      <span className="quiet small">{say("in the document")}</span>
                    )}
                    <button
                      type="button"
                      className="more"
                      disabled={index === 0}
                      onClick={() =>
                        put(moved(rules, index, index - 1), say("Now at place {number}", { number: `${index}` }))
                      }
                    >
                      {say("Up [to move]")}
                      <span className="sr"> {called(rule, index)}</span>
                    </button>
                    <button
                      type="button"
                      className="more"
                      disabled={index === rules.length - 1}
                      onClick={() =>
                        put(moved(rules, index, index + 1), say("Now at place {number}", { number: `${index + 2}` }))
                      }
                    >
                      {say("Down [to move]")}
                      <span className="sr"> {called(rule, index)}</span>
                    </button>
                    <button
                      type="button"
                      className="more"
                      onClick={() => {
                        put(
                          rules.filter((_, n) => n !== index),
                          say("Removed"),
                        );
                        close();
                      }}
                    >
                      {say("Remove")}
                      <span className="sr"> {called(rule, index)}</span>
                    </button>
                  </span>
                </td>
              </tr>
            );
          })}
        </Table>
      ) : (
        <p className="note">{say("There are no rules: everything is not assigned.")}</p>
      )}
      <p className="sr" role="status">
        {told}
      </p>
      {open === null ? (
        <p className="tools">
          <button ref={add} type="button" className="button" onClick={() => setOpen("new")}>
            {say("Add a rule")}
          </button>
          <span className="note">{say("A new rule stands first; the first that matches decides.")}</span>
        </p>
      ) : (
        <RuleFields
          key={open}
          {...(open === "new" || !rules[open] ? {} : { rule: rules[open] })}
          values={values}
          onCancel={close}
          onDone={(rule) => {
            if (open === "new") put([rule, ...rules], say("Added at place 1"));
            else
              put(
                rules.map((each, n) => (n === open ? rule : each)),
                say("Changed"),
              );
            close();
          }}
        />
      )}
    </>
  );
}
