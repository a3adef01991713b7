import { useMutation, useQueryClient } from "@tanstack/react-query";
import { askAgain } from "../../api/answer";
import { type Because, documentOf, readCategory, readVersion, saveCategory } from "../../api/categories";
import { useHere } from "../../app/router";
import { SavedBanner } from "../../ui/saved";
import { say } from "../../words/say";
import { refusalOf, type Saved } from "./undo";

/** Put back what a saved change replaced. Fails where somebody has changed the category since. */
export function useUndo(categoryKey: string, saved: Saved | null) {
  const tenant = useHere().tenant ?? "";
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (because: Partial<Because>) => {
      if (saved === null) throw new Error(say("There is nothing to undo."));
      const refusal = refusalOf(saved, await readCategory(tenant, categoryKey));
      if (refusal) throw refusal;
      const before = documentOf(await readVersion(tenant, categoryKey, saved.replaced));
      const reason = say("Undo of version {version}", { version: `${saved.version}` });
      return saveCategory(tenant, categoryKey, before, { reason, ...because }, saved.etag);
    },
    onSuccess: () => askAgain(client),
  });
}

type Undo = ReturnType<typeof useUndo>;

export const undoneWords = (undo: Undo, { replaced }: Saved) =>
  undo.isSuccess
    ? say("Undone: version {version} is as version {replaced} was.", {
        version: `${undo.data.body.version}`,
        replaced: `${replaced}`,
      })
    : null;

/** Undo a change in closed months, too. */
export const restatingBy = (undo: Undo) => (reason: string) => undo.mutate({ reason, restates: true });

/** What was saved, and the way back; null where there was nothing to save. */
export function SavedNotice({ categoryKey, saved }: { categoryKey: string; saved: Saved | null }) {
  const undo = useUndo(categoryKey, saved);
  return (
    <SavedBanner
      done={
        saved
          ? say("Saved as version {version}.", { version: `${saved.version}` })
          : say("Nothing was saved: the category said the same before.")
      }
      undone={saved && undoneWords(undo, saved)}
      undo={undo}
      onUndo={saved && (() => undo.mutate({}))}
      onRestate={restatingBy(undo)}
    />
  );
}
