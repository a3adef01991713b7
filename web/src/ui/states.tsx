import { type CSSProperties, createContext, type ReactNode, useContext } from "preact/compat";
import type { Answer, Unknown } from "../api/answer";
import { asProblem, isEverywhere } from "../api/problems";
import { say } from "../words/say";
import { Icon } from "./icons";

interface Props<T, Q> {
  answer: Answer<T, Q>;
  skeleton: ReactNode;
  /** Draws an answer to a question, which is not always the one that is asked now. */
  children: (data: T, of: Q) => ReactNode;
}

/** Whether it is said once above all cards that there is no network, no service, or no session. */
export const IsSaidAbove = createContext(false);

/** Show what is known, or why nothing is. What was answered before stays, dimmed, until the next answer comes. */
export function Answered<T, Q>({ answer, skeleton, children }: Props<T, Q>) {
  const { known } = answer;
  if (!known) return <Missing unknown={answer.unknown}>{skeleton}</Missing>;
  return (
    <>
      {known.missing && <Missing unknown={known.missing} old />}
      <div className={known.missing ? "main-part stale" : "main-part"} aria-busy={known.isOld}>
        {children(known.data, known.of)}
      </div>
    </>
  );
}

/** Why there is no answer; `old`: older figures stand below it. */
export function Missing({ unknown, old = false, children }: { unknown: Unknown; old?: boolean; children?: ReactNode }) {
  const { why, problem, retry } = unknown;
  const isSaid = useContext(IsSaidAbove) && (problem ? isEverywhere(problem) : why === "paused");
  if (isSaid) return children && <div className="main-part">{children}</div>;
  if (problem) return <Failure error={problem} retry={retry} old={old} />;
  if (why === "paused") return <Offline old={old} />;
  return old ? <div className="progress" /> : <Loading>{children}</Loading>;
}

export function Loading({ children }: { children: ReactNode }) {
  return (
    <div className="main-part" aria-busy="true">
      <div className="progress" />
      <p className="sr" role="status">
        {say("Loading")}
      </p>
      {children}
    </div>
  );
}

export function Failure({ error, retry, old = false }: { error: unknown; retry: () => unknown; old?: boolean }) {
  const { title, detail, status, hasEnded } = asProblem(error);
  const answer = status ? `HTTP ${status}` : say("No answer");
  return (
    <section className="card problem" role="alert">
      <h2>{title}</h2>
      <p>{detail}</p>
      <p className="note">{old ? say("{answer}; the figures below are those of before", { answer }) : answer}</p>
      <button type="button" className="button" onClick={() => (hasEnded ? location.reload() : retry())}>
        {hasEnded ? say("Load the page again") : say("Try again")}
      </button>
    </section>
  );
}

export function Offline({ old = false }: { old?: boolean }) {
  return (
    <section className="card problem" role="alert">
      <h2>{say("You are offline")}</h2>
      <p>
        {old
          ? say("The page asks again as soon as there is a network; the figures below are those of before.")
          : say("The page asks again as soon as there is a network.")}
      </p>
    </section>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <section className="card empty">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function Warning({ children }: { children: ReactNode }) {
  return (
    <p className="warning">
      <Icon name="warning" />
      <span>{children}</span>
    </p>
  );
}

/** A grey place of a given height, in rem, for what is to come. */
export function Bone({ height, width }: { height: number; width?: string }) {
  return <div className="bone" style={{ height: `${height}rem`, width }} />;
}

/** The same for a table with some rows, its head and its foot among them. */
export function BoneTable({ rows }: { rows: number }) {
  return <div className="bone table-place" style={{ "--rows": rows } as CSSProperties} />;
}
