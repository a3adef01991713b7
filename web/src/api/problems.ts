import { reworded } from "../words/reworded";
import { say } from "../words/say";

/** One part of a request, such as `document.rules[0].assign`, and what is wrong with it. */
export interface Mistake {
  parameter: string;
  message: string;
}

/** What has moved, or would, by month and value: the first so many. */
export interface Moved {
  moved: readonly Readonly<
    Record<"period_id" | "by" | "before" | "after" | "delta", string> & { value: string | null }
  >[];
  moved_count: number;
  currency: string;
}

/** What a change would move in closed months, and from which day on it would not. */
export interface Reaching extends Moved {
  begins: string;
}

/** An answer that is not a success (RFC 9457), or none at all (status 0). */
export class Problem extends Error {
  /** What is wrong with which part of the request, where the service says so. */
  readonly errors: readonly Mistake[];
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Of a change that is refused because it would move amounts of closed months: which. */
  readonly reaching: Reaching | null;
  /** Of a closing that is refused because it would book something else than was looked at: what. */
  readonly stale: Moved | null;

  constructor(
    status: number,
    title: string,
    detail: string,
    errors: readonly Mistake[] = [],
    moved: Moved | Reaching | null = null,
  ) {
    super(`${title}: ${detail}`);
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.errors = errors;
    this.reaching = moved && "begins" in moved ? moved : null;
    this.stale = moved && !("begins" in moved) && moved.moved.length > 0 ? moved : null;
  }

  /** Whether another try can help: a request that is wrong stays wrong. */
  get passes(): boolean {
    return this.status === 0 || this.status >= 500 || this.status === 429;
  }

  /** Whether this reader may not have it, or is not known any more. */
  get isRefusal(): boolean {
    return this.status === 403 || this.hasEnded;
  }

  /** Whether the reader has to sign in again: loading the page leads there, and asking again does not. */
  get hasEnded(): boolean {
    return this.status === 401 || (this.status >= 200 && this.status < 300);
  }
}

/** Whether every other question has the same problem now: there is no service, or no session. */
export function isEverywhere(error: unknown): error is Problem {
  return error instanceof Unreachable || (error instanceof Problem && error.hasEnded);
}

const TITLES: Record<number, string> = {
  401: say("You are not signed in"),
  403: say("You may not see this"),
  404: say("There is no such thing here"),
  504: say("This takes too long"),
};

const DETAILS: Record<number, string> = {
  401: say("The proxy before this service asks who you are. Load the page again to sign in."),
  403: say("The proxy before this service does not let you see it. Ask whoever runs the service."),
};

/** The problem that an answer tells; a proxy's answer may be a page of HTML, which says nothing to a reader. */
export async function problemOf(answer: Response): Promise<Problem> {
  const { status } = answer;
  const title = TITLES[status] ?? (status >= 500 ? say("The service has a problem") : say("The request was refused"));
  try {
    const body = await answer.json();
    const errors: Mistake[] = Array.isArray(body.errors) ? body.errors : [];
    const named = status === 401 ? title : reworded(String(body.title ?? title));
    const moved: Moved | Reaching | null = Array.isArray(body.moved) ? body : null;
    return new Problem(status, named, reworded(String(body.detail ?? answer.statusText)), errors, moved);
  } catch {
    return new Problem(status, title, DETAILS[status] ?? answer.statusText);
  }
}

const PART_MISSING = say(
  "Your session has ended, the service was updated, or it cannot be reached. Load the page again.",
);

/** What a page of HTML in place of an answer means: the proxy before the service asks who the reader is. */
export function signedOut(status: number): Problem {
  return new Problem(
    status,
    say("Your session has ended"),
    say(
      "Something before this service answered with a page of its own, as it does to let you sign in. Load the page again to do so.",
    ),
  );
}

/** There was no answer, or that of a proxy which got none; what changes something is not tried again by itself. */
export class Unreachable extends Problem {
  constructor(isChange = false, status = 0) {
    super(
      status,
      say("The service cannot be reached"),
      isChange
        ? say("There was no answer: the network or the service is down. Try again when it is back.")
        : say("The network or the service is down; the page tries again."),
    );
  }
}

/** Whether a part of the page could not be loaded: loading the page again can help, and nothing else. */
export function isPartMissing(error: unknown): boolean {
  return error instanceof TypeError && /module/i.test(error.message);
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (isPartMissing(error)) return new Problem(0, say("A part of the page could not be loaded"), PART_MISSING);
  return new Problem(0, say("This page made a mistake"), String(error));
}
