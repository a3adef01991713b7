import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { TRIAL } from "../../api/answer";
import { type Because, documentOf, readCategory, readVersion, saveCategory } from "../../api/categories";
import { asProblem } from "../../api/problems";
import { useHere } from "../../app/router";
import { ReachesClosed } from "../../ui/closed";
import { refusalOf, type Saved } from "./undo";

/** Put back what a saved change replaced. Throws a {@link Problem} where somebody has changed the category since. */
async function undo(tenant: string, key: string, saved: Saved, because: Because) {
  const refusal = refusalOf(saved, await readCategory(tenant, key));
  if (refusal) throw refusal;
  const before = await readVersion(tenant, key, saved.replaced);
  return saveCategory(tenant, key, documentOf(before), because, saved.etag);
}

/** What was saved, and the way back; null where there was nothing to save. */
export function SavedNotice({ categoryKey, saved }: { categoryKey: string; saved: Saved | null }) {
  const { tenant } = useHere();
  const client = useQueryClient();
  const notice = useRef<HTMLParagraphElement>(null);
  // The button that saved is gone: keys go on from here.
  useEffect(() => notice.current?.focus(), []);
  const back = useMutation({
    mutationFn: ({ saved, because }: { saved: Saved; because: Because }) =>
      undo(tenant ?? "", categoryKey, saved, because),
    onSuccess: () => client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== TRIAL }),
  });
  const problem = back.isError ? asProblem(back.error) : null;
  const undoOf = (saved: Saved, because: Partial<Because> = {}) =>
    back.mutate({ saved, because: { reason: `Undo of version ${saved.version}`, ...because } });
  return (
    <>
      <p ref={notice} className="banner good" role="status" tabIndex={-1}>
        {saved === null
          ? "Nothing was saved: the category said the same before."
          : back.isSuccess
            ? `Undone: version ${back.data.body.version} is as version ${saved.replaced} was.`
            : `Saved as version ${saved.version}.`}
        {saved && !back.isSuccess && (
          <button type="button" className="button" disabled={back.isPending} onClick={() => undoOf(saved)}>
            Undo
          </button>
        )}
      </p>
      {saved && problem?.reaching && (
        <ReachesClosed
          of={problem.reaching}
          onRestate={(reason) => undoOf(saved, { reason, restates: true })}
          isPending={back.isPending}
        />
      )}
      {problem && !problem.reaching && (
        <p className="banner bad" role="alert">
          <span>
            <b>{problem.title}.</b> {problem.detail}
          </span>
        </p>
      )}
    </>
  );
}
