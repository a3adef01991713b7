/** An edit of a cost category: its states, and what leads from one to another. */
import { documentOf, isShaped } from "../../api/categories";
import type { Versioned } from "../../api/client";
import type { Category } from "../../api/shapes";
import { say } from "../../words/say";
import { type CategoryDocument, parsed, written } from "./document";

/** What an edit begins with: a version of a category, or nothing yet (`etag` null). */
export interface Start {
  key: string;
  document: CategoryDocument;
  etag: string | null;
  version: number | null;
}

export function startOf({ body, etag }: Versioned<Category>): Start {
  return { key: body.key, document: documentOf(body), etag, version: body.version };
}

/** The rule whose form is open. */
export type Open = number | "new" | null;

/** `editing` until the document is to be previewed, then `previewing` what it would change, `saving` it, or `refused`;
 * `loading` fetches the version that somebody else has saved meanwhile. Every edit leads back to `editing`. */
export type Stage = "editing" | "previewing" | "saving" | "refused" | "loading";

export interface Editing {
  stage: Stage;
  /** The version that is replaced. */
  base: Start;
  key: string;
  document: CategoryDocument;
  /** The text while the document is edited as JSON, and what is wrong with it; null while its rules are edited. */
  text: string | null;
  wrong: string | null;
  open: Open;
  /** The document that was edited before another version was loaded. */
  kept: CategoryDocument | null;
  /** Why it was not saved, and why the other version could not be loaded. */
  refusal: unknown;
  lost: unknown;
}

export type Event =
  | { type: "name"; key: string }
  | { type: "change"; document: CategoryDocument }
  | { type: "type"; text: string }
  | { type: "open"; open: Open }
  | { type: "as text" | "as rules" | "preview" | "save" | "load" | "swap" }
  | { type: "loaded"; theirs: Start }
  | { type: "failed"; error: unknown };

export function begin(start: Start): Editing {
  const { key, document } = start;
  const nothing = { text: null, wrong: null, open: null, kept: null, refusal: null, lost: null };
  return { stage: "editing", base: start, key, document, ...nothing };
}

export function edit(state: Editing, event: Event): Editing {
  const { stage, text, kept } = state;
  switch (event.type) {
    case "name":
      return edited(state, { key: event.key });
    case "change":
      return shown(state, event.document);
    case "type":
      return edited(state, { text: event.text });
    case "open":
      return { ...state, open: event.open };
    case "as text":
      return text === null ? { ...state, text: written(state.document), open: null } : state;
    case "as rules":
      return read(state, (document) =>
        isShaped(document)
          ? edited(state, { document, text: null })
          : { ...state, wrong: say("The rules should be a list of objects that each have a match.") },
      );
    case "preview":
      return read(state, (document) => ({ ...edited(state, { document }), stage: "previewing" }));
    case "save":
      return stage === "previewing" || stage === "refused" ? { ...state, stage: "saving", refusal: null } : state;
    case "load":
      return stage === "refused" ? { ...state, stage: "loading", lost: null } : state;
    case "loaded":
      return { ...shown(state, event.theirs.document), base: event.theirs, kept: state.document };
    case "swap":
      return kept ? read(state, (own) => ({ ...shown(state, kept), kept: own })) : state;
    case "failed": {
      const why = stage === "loading" ? { lost: event.error } : { refusal: event.error };
      return { ...state, ...why, stage: stage === "editing" ? stage : "refused" };
    }
  }
}

/** The state after an edit: what was shown or said of the document before is of no use any more. */
function edited(state: Editing, change: Partial<Editing>): Editing {
  return { ...state, stage: "editing", wrong: null, refusal: null, lost: null, ...change };
}

/** The state with another document, as rules or as text, whatever it was. */
function shown(state: Editing, document: CategoryDocument): Editing {
  return edited(state, { document, text: state.text === null ? null : written(document), open: null });
}

/** Go on with the document as it is typed, or say what is wrong with its text. */
function read(state: Editing, next: (document: CategoryDocument) => Editing): Editing {
  if (state.text === null) return next(state.document);
  const found = parsed(state.text);
  return "wrong" in found ? { ...state, wrong: found.wrong } : next(found.document);
}

/** Whether there is anything that is not saved: a change, a form that is open, or the own document beside another one. */
export function isChanged({ base, key, document, text, open, kept }: Editing): boolean {
  const saved = written(base.document);
  return key !== base.key || (text ?? written(document)) !== saved || open !== null || kept !== null;
}
