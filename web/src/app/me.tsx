import { present } from "../api/answer";
import { useAccess, useMe, userOf } from "../api/me";
import type { Me } from "../api/shapes";
import { conditions, either, RIGHTS } from "../format/rights";
import { Icon } from "../ui/icons";
import { Popover } from "../ui/popover";

const VOUCHED: Record<Me["kind"], string> = {
  anonymous: "",
  proxy: "signed in at the proxy",
  jwt: "signed in with a JSON Web Token",
  token: "signed in with an access token",
};

/** Who I am, and what I may see and do here; nothing where the service tells nobody apart. */
export function MeButton({ tenant }: { tenant: string }) {
  const me = present(useMe());
  const user = userOf(me);
  if (!me || user === null) return null;
  return (
    <Popover
      name="Who I am"
      icon="person"
      bare
      label={
        <span className="narrow-sr cut me-name">
          <span className="sr">Who I am: </span>
          {user}
        </span>
      }
    >
      {() => <Card me={me} tenant={tenant} />}
    </Popover>
  );
}

function Card({ me, tenant }: { me: Me; tenant: string }) {
  const { may, scope } = useAccess(tenant);
  const role = me.tenants.find((each) => each.tenant_name === tenant)?.role;
  return (
    <div className="me" tabIndex={-1}>
      <p>
        <b>{me.user}</b>
        <br />
        <span className="note">{VOUCHED[me.kind]}</span>
      </p>
      {me.groups.length > 0 && (
        <>
          <h3>Groups</h3>
          <p>{me.groups.join(", ")}</p>
        </>
      )}
      {role !== undefined && (
        <>
          <h3>In {tenant}, I see</h3>
          {scope ? (
            <ul>
              {conditions(scope).map(({ what, values }) => (
                <li key={what}>
                  only what has {what}: <b>{either(values)}</b>
                </li>
              ))}
            </ul>
          ) : (
            <p>everything</p>
          )}
          <h3>I may</h3>
          <ul className="rights">
            {RIGHTS.map(([right, meaning]) => (
              <li key={right} className={may(right) ? undefined : "quiet"}>
                <Icon name={may(right) ? "check" : "close"} />
                {!may(right) && <span className="sr">not: </span>}
                {meaning}
              </li>
            ))}
          </ul>
          {role && (
            <p className="note">Given by {role.startsWith("roles[") ? `access.${role} in the configuration` : role}.</p>
          )}
        </>
      )}
    </div>
  );
}

/** Who is signed in, in one sentence; empty where the service tells nobody apart. */
export function SignedIn() {
  const me = present(useMe());
  const user = userOf(me);
  if (!me || user === null) return null;
  return (
    <p className="note">
      You are signed in as <b>{user}</b>
      {me.groups.length > 0 && `, in ${me.groups.length === 1 ? "the group" : "the groups"} ${me.groups.join(", ")}`}.
    </p>
  );
}
