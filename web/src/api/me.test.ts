import { describe, expect, test } from "vitest";
import { accessOf, userOf } from "./me";
import { Problem } from "./problems";
import type { Me, Right } from "./shapes";

const RIGHTS: Right[] = ["read", "export", "tag", "run", "close", "admin"];

function me(more: Partial<Me> = {}): Me {
  const tenants = [{ tenant_name: "acme", rights: ["read"], scope: { environment_id: ["env-1"] }, role: "roles[1]" }];
  return { user: "alice@example.com", kind: "proxy", groups: ["team-a"], tenants, ...more } as Me;
}

describe("what a reader may do", () => {
  test("nothing is offered before it is known", () => {
    const found = accessOf(undefined, "acme", null);
    expect(found).toMatchObject({ isKnown: false, user: null, scope: null, seesAll: false });
    expect(RIGHTS.some(found.may)).toBe(false);
  });

  test("a service or a proxy that does not say it takes nothing away: every request is checked there", () => {
    for (const status of [0, 403, 404, 503]) {
      const found = accessOf(undefined, "acme", new Problem(status, "", ""));
      expect(found).toMatchObject({ isKnown: true, seesAll: true });
      expect(RIGHTS.every(found.may)).toBe(true);
    }
    for (const status of [200, 401])
      expect(accessOf(undefined, "acme", new Problem(status, "", "")).isKnown).toBe(false);
  });

  test("it is what the service says of this tenant, and nothing of another", () => {
    const here = accessOf(me(), "acme", null);
    expect(here).toMatchObject({ user: "alice@example.com", scope: { environment_id: ["env-1"] }, seesAll: false });
    expect(RIGHTS.filter(here.may)).toEqual(["read"]);
    const elsewhere = accessOf(me(), "globex", null);
    expect(elsewhere).toMatchObject({ isKnown: true, seesAll: false, scope: null });
    expect(RIGHTS.some(elsewhere.may)).toBe(false);
  });

  test("without a scope the reader sees the whole bill", () => {
    const tenants = [{ tenant_name: "acme", rights: RIGHTS, scope: null, role: "roles[0]" }];
    expect(accessOf(me({ tenants }), "acme", null).seesAll).toBe(true);
  });

  test("nobody has a name where nobody is told apart", () => {
    expect(userOf(me({ kind: "anonymous", user: "api" }))).toBeNull();
    expect(userOf(undefined)).toBeNull();
    expect(userOf(me({ kind: "token", user: "ci" }))).toBe("ci");
  });
});
