/** Answers to questions, and why there are none: no component reads the state of a request in any other way. */
import { keepPreviousData, QueryClient, useQueries, useQuery } from "@tanstack/react-query";
import { asProblem, type Problem } from "./problems";

const SECOND = 1000;

/** How the keys of questions begin that only try a change: what changes for all the others says nothing of them. */
export const TRIAL = "trial";

/** Ask everything again after a change, except for what only tried it. */
export const askAgain = (client: QueryClient) =>
  client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== TRIAL });

/** A question, by its address; `of` says what was asked. */
export interface Question<T, Q = unknown> {
  key: readonly unknown[];
  of: Q;
  ask: (signal: AbortSignal) => Promise<T>;
  /** What is answered already, because it was asked before the page was there. */
  answered?: () => T | undefined;
  /** Whether it can be asked yet; until then its answer is awaited. */
  enabled?: boolean;
  /** Whether the answer to the question before is of no use, because it is about something else. */
  alone?: boolean;
  /** After how many seconds it is asked again; `once`: never, and it is forgotten with whoever asked. */
  again?: number | "once" | ((data: T | undefined) => number);
}

/** Why there is no answer to what is asked now: it is on its way; it waits for a network; it failed; or the reader may
 * not have it. */
export interface Unknown {
  why: "loading" | "paused" | "failed" | "not allowed";
  /** What went wrong; null while nothing did. */
  problem: Problem | null;
  retry: () => unknown;
}

/** What was answered, and to which question. */
export interface Known<T, Q> {
  data: T;
  of: Q;
  /** Whether something else is asked now, and this is shown until it is answered. */
  isOld: boolean;
  /** Why there is nothing newer, where something newer is missing. */
  missing: Unknown | null;
}

export type Answer<T, Q = unknown> = { known: Known<T, Q> } | { known: null; unknown: Unknown };

/** What TanStack Query keeps of an answer. */
export interface Kept<T, Q> {
  data: T;
  of: Q;
}

export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30 * SECOND,
        refetchInterval: 60 * SECOND,
        retry: (failures, error) => failures < 3 && asProblem(error).passes,
      },
      // Without a network, a change is refused at once: done later, it would be a surprise.
      mutations: { networkMode: "always" },
    },
  });
}

/** Ask a question: what is known, or why nothing is. The answer to the question before stays until there is a new one. */
export function useAnswer<T, Q>(question: Question<T, Q>): Answer<T, Q> {
  return answerOf(
    useQuery({ ...request(question), ...(!question.alone && { placeholderData: keepPreviousData<Kept<T, Q>> }) }),
  );
}

/** The same question with other words for what was asked, which stand beside its answer. */
export function asking<T, Q>(question: Question<T>, of: Q): Question<T, Q> {
  return { ...question, key: [...question.key, of], of };
}

/** Ask several questions at once. */
export function useAnswers<T, Q>(questions: readonly Question<T, Q>[]): Answer<T, Q>[] {
  return useQueries({ queries: questions.map(request) }).map(answerOf);
}

/** What is known of what is asked now; nothing that was answered to another question. */
export function present<T>(answer: Answer<T>): T | undefined {
  return answer.known && !answer.known.isOld ? answer.known.data : undefined;
}

/** Why what is asked now is not known, if so. */
export function missing(answer: Answer<unknown>): Unknown | null {
  return answer.known ? answer.known.missing : answer.unknown;
}

function request<T, Q>({ key, of, ask, answered, enabled = true, again }: Question<T, Q>) {
  const after = (seconds: number | "once"): number | false => (seconds === "once" ? false : seconds * SECOND);
  return {
    queryKey: key,
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Kept<T, Q>> => ({ data: await ask(signal), of }),
    initialData: (): Kept<T, Q> | undefined => {
      const data = enabled ? answered?.() : undefined;
      return data === undefined ? undefined : { data, of };
    },
    enabled,
    ...(again === "once" && { staleTime: Number.POSITIVE_INFINITY, gcTime: 0 }),
    ...(again !== undefined && {
      refetchInterval: ({ state }: { state: { data: Kept<T, Q> | undefined } }) =>
        after(typeof again === "function" ? again(state.data?.data) : again),
    }),
  };
}

/** What a request that TanStack Query keeps tells. */
interface Request<K> {
  data: K | undefined;
  isPlaceholderData: boolean;
  fetchStatus: "fetching" | "paused" | "idle";
  failureReason: unknown;
  error: unknown;
  refetch: () => unknown;
}

export function answerOf<T, Q>(request: Request<Kept<T, Q>>): Answer<T, Q> {
  const { data, isPlaceholderData: isOld, fetchStatus, refetch: retry } = request;
  const failed = request.failureReason ?? request.error;
  const problem = failed ? asProblem(failed) : null;
  const isPaused = fetchStatus === "paused";
  const why = problem ? (problem.isRefusal ? "not allowed" : "failed") : isPaused ? "paused" : "loading";
  const unknown = { why, problem, retry } as const;
  if (!data) return { known: null, unknown };
  return { known: { ...data, isOld, missing: isOld || problem || isPaused ? unknown : null } };
}
