import type { ReactNode } from "react";
import { asProblem } from "../api/problems";
import { Icon } from "./icons";

interface Query<T> {
  data: T | undefined;
  error: unknown;
  failureReason: unknown;
  isFetching: boolean;
  isPlaceholderData: boolean;
  refetch: () => unknown;
}

interface Props<T> {
  query: Query<T>;
  skeleton: ReactNode;
  children: (data: T) => ReactNode;
}

/** Show a question's answer, and every state before, between and instead of it. Old figures stay while new ones come. */
export function Answered<T>({ query, skeleton, children }: Props<T>) {
  const failed = query.failureReason ?? query.error;
  if (query.data === undefined)
    return failed ? <Failure error={failed} retry={query.refetch} /> : <Loading>{skeleton}</Loading>;
  return (
    <>
      {query.isFetching && query.isPlaceholderData && <div className="progress" />}
      {failed ? <Failure error={failed} retry={query.refetch} old /> : null}
      <div className={query.isPlaceholderData ? "main-part stale" : "main-part"} aria-busy={query.isPlaceholderData}>
        {children(query.data)}
      </div>
    </>
  );
}

export function Loading({ children }: { children: ReactNode }) {
  return (
    <div className="main-part" aria-busy="true">
      <div className="progress" />
      <p className="sr" role="status">
        Loading
      </p>
      {children}
    </div>
  );
}

export function Failure({ error, retry, old = false }: { error: unknown; retry: () => unknown; old?: boolean }) {
  const { title, detail, status } = asProblem(error);
  return (
    <section className="card problem" role="alert">
      <h2>{title}</h2>
      <p>{detail}</p>
      <p className="note">
        {status ? `HTTP ${status}` : "No answer"}
        {old && "; the figures below are those of before"}
      </p>
      <button type="button" className="button" onClick={() => retry()}>
        Try again
      </button>
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
