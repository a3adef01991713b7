import { useEffect, useRef } from "preact/compat";
import { asProblem } from "../api/problems";
import { say } from "../words/say";
import { ReachesClosed } from "./closed";

/** What is known of an attempt to undo something. */
interface Undoing {
  isSuccess: boolean;
  isPending: boolean;
  isError: boolean;
  error: Error | null;
}

interface FailedProps {
  undo: Undoing;
  /** Undoes it in closed months, too, for a reason. */
  onRestate: (reason: string) => void;
}

interface Props extends FailedProps {
  /** What was done, and that it was undone, in words. */
  done: string;
  undone: string | null;
  /** Null where there is no way back. */
  onUndo: (() => void) | null;
}

/** What was saved, and the way back. */
export function SavedBanner({ done, undone, undo, onUndo, onRestate }: Props) {
  const notice = useRef<HTMLParagraphElement>(null);
  // The button that was pressed is gone: keys go on from here.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the undo takes away its button, too
  useEffect(() => notice.current?.focus(), [undo.isSuccess]);
  return (
    <>
      <p ref={notice} className="banner good" role="status" tabIndex={-1}>
        {undo.isSuccess ? undone : done}
        {onUndo && !undo.isSuccess && (
          <button type="button" className="button" disabled={undo.isPending} onClick={onUndo}>
            {say("Undo")}
          </button>
        )}
      </p>
      <NotUndone undo={undo} onRestate={onRestate} />
    </>
  );
}

/** Why it was not undone; nothing otherwise. */
export function NotUndone({ undo, onRestate }: FailedProps) {
  if (!undo.isError) return null;
  const { title, detail, reaching } = asProblem(undo.error);
  if (reaching) return <ReachesClosed of={reaching} onRestate={onRestate} isPending={undo.isPending} />;
  return (
    <p className="banner bad" role="alert">
      <span>
        <b>{title}.</b> {detail}
      </span>
    </p>
  );
}
