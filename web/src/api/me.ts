/** Who reads the page, and what that reader may do with a tenant. */
import { useQuery } from "@tanstack/react-query";
import { API } from "../url/link";
import { read } from "./client";
import { asProblem } from "./problems";
import type { Me, Right, Scope } from "./shapes";

export const useMe = () =>
  useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => read<Me>(`${API}me`, signal),
    staleTime: 60_000,
  });

/** What a reader may do with one tenant. */
export interface Access {
  /** Whether the service has said it. Until then nothing is offered that could be taken away again. */
  isKnown: boolean;
  /** The reader's name; null where the service tells nobody apart. */
  user: string | null;
  scope: Scope | null;
  may: (right: Right) => boolean;
  /** Whether the reader sees what is about the whole bill. */
  seesAll: boolean;
}

export function useAccess(tenant: string): Access {
  const { data, failureReason } = useMe();
  const failed = failureReason ? asProblem(failureReason).status : null;
  return accessOf(data, tenant, failed);
}

/** `failed` is the status of the answer about the reader where there is none. */
export function accessOf(me: Me | undefined, tenant: string, failed: number | null): Access {
  // What a proxy hides, or what fails, takes nothing away: the service checks every request all the same.
  if (!me) {
    const open = failed !== null && failed !== 401;
    return { isKnown: open, user: null, scope: null, may: () => open, seesAll: open };
  }
  const found = me.tenants.find((each) => each.tenant_name === tenant);
  return {
    isKnown: true,
    user: userOf(me),
    scope: found?.scope ?? null,
    may: (right) => found?.rights.includes(right) ?? false,
    seesAll: found !== undefined && found.scope === null,
  };
}

/** The name of the reader; null where the service tells nobody apart. */
export const userOf = (me: Me | undefined): string | null => (!me || me.kind === "anonymous" ? null : me.user);
