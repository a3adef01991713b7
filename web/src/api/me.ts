/** Who reads the page, and what that reader may do with a tenant. */
import { API } from "../url/link";
import { missing, present, useAnswer } from "./answer";
import { read } from "./client";
import { takeEarly } from "./early";
import type { Problem } from "./problems";
import type { Me, Right, Scope } from "./shapes";

const ME = `${API}me`;

export const useMe = () =>
  useAnswer({ key: ["me"], of: null, ask: (signal) => read<Me>(ME, signal), answered: () => takeEarly<Me>(ME) });

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
  const me = useMe();
  return accessOf(present(me), tenant, missing(me)?.problem ?? null);
}

/** `failed` is why there is no answer about the reader. */
export function accessOf(me: Me | undefined, tenant: string, failed: Problem | null): Access {
  // What a proxy hides, or what fails, takes nothing away: the service checks every request all the same.
  if (!me) {
    const open = failed !== null && !failed.hasEnded;
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
