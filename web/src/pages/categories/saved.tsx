import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { TRIAL } from "../../api/answer";
import { type Because, documentOf, readCategory, readVersion, saveCategory } from "../../api/categories";
import { asProblem } from "../../api/problems";
import { useHere } from "../../app/router";
import { ReachesClosed } from "../../ui/closed";
import { refusalOf, type Saved } from "./undo";

/** Put back what a saved change replaced. Fails where somebody has changed the category since. */
export function useUndo(categoryKey: string, saved: Saved | null) {
  const tenant = useHere().tenant ?? "";
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (because: Partial<Because>) => {
      if (saved === null) throw new Error("There is nothing to undo.");
      const refusal = refusalOf(saved, await readCategory(tenant, categoryKey));
      if (refusal) throw refusal;
      const before = documentOf(await readVersion(tenant, categoryKey, saved.replaced));
      const reason = `Undo of version ${saved.version}`;
      return saveCategory(tenant, categoryKey, before, { reason, ...because }, saved.etag);
    },
    onSuccess: () => client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== TRIAL }),
  });
}

type Undo = ReturnType<typeof useUndo>;

export const undoneWords = (undo: Undo, { replaced }: Saved) =>
  undo.isSuccess ? `Undone: version ${undo.data.body.version} is as version ${replaced} was.` : null;

/** Why it was not undone; nothing otherwise. */
export function NotUndone({ undo }: { undo: Undo }) {
  if (!undo.isError) return null;
  const { title, detail, reaching } = asProblem(undo.error);
  if (reaching)
    return (
      <ReachesClosed
        of={reaching}
        onRestate={(reason) => undo.mutate({ reason, restates: true })}
        isPending={undo.isPending}
      />
    );
  return (
    <p className="banner bad" role="alert">
      <span>
        <b>{title}.</b> {detail}
      </span>
    </p>
  );
}

/** What was saved, and the way back; null where there was nothing to save. */
export function SavedNotice({ categoryKey, saved }: { categoryKey: string; saved: Saved | null }) {
  const undo = useUndo(categoryKey, saved);
  const notice = useRef<HTMLParagraphElement>(null);
  // The button that was pressed is gone: keys go on from here.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the undo takes away its button, too
  useEffect(() => notice.current?.focus(), [undo.isSuccess]);
  const undone = saved && undoneWords(undo, saved);
  return (
    <>
      <p ref={notice} className="banner good" role="status" tabIndex={-1}>
        {saved === null
          ? "Nothing was saved: the category said the same before."
          : (undone ?? `Saved as version ${saved.version}.`)}
        {saved && !undone && (
          <button type="button" className="button" disabled={undo.isPending} onClick={() => undo.mutate({})}>
            Undo
          </button>
        )}
      </p>
      <NotUndone undo={undo} />
    </>
  );
}
