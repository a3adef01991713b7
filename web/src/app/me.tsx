import { present } from "../api/answer";
import { useAccess, useMe, userOf } from "../api/me";
import type { Me } from "../api/shapes";
import { conditions, either, RIGHTS } from "../format/rights";
import { Icon } from "../ui/icons";
import { Popover } from "../ui/popover";
import { say } from "../words/say";

const VOUCHED: Record<Me["kind"], string> = {
  anonymous: "",
  proxy: say("signed in at the proxy"),
  jwt: say("signed in with a JSON Web Token"),
  token: say("signed in with an access token"),
};

/** Who I am, and what I may see and do here; nothing where the service tells nobody apart. */
export function MeButton({ tenant }: { tenant: string }) {
  const me = present(useMe());
  const user = userOf(me);
  if (!me || user === null) return null;
  return (
    <Popover
      name={say("Who I am")}
      icon="person"
      bare
      label={
        <span className="narrow-sr cut me-name">
          <span className="sr">{say("Who I am: ")}</span>
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
          <h3>{say("Groups")}</h3>
          <p>{me.groups.join(", ")}</p>
        </>
      )}
      {role !== undefined && (
        <>
          <h3>{say("In {tenant}, I see", { tenant })}</h3>
          {scope ? (
            <ul>
              {conditions(scope).map(({ what, values }) => (
                <li key={what}>{say("only what has {what}: {values}", { what, values: <b>{either(values)}</b> })}</li>
              ))}
            </ul>
          ) : (
            <p>{say("everything")}</p>
          )}
          <h3>{say("I may")}</h3>
          <ul className="rights">
            {RIGHTS.map(([right, meaning]) => (
              <li key={right} className={may(right) ? undefined : "quiet"}>
                <Icon name={may(right) ? "check" : "close"} />
                {!may(right) && <span className="sr">{say("not: ")}</span>}
                {meaning}
              </li>
            ))}
          </ul>
          {role && (
            <p className="note">
              {role.startsWith("roles[")
                ? say("Given by access.{role} in the configuration.", { role })
                : say("Given by {role}.", { role })}
            </p>
          )}
        </>
      )}
    </div>
  );
}

/** Who is signed in, in one sentence; empty where the service tells nobody apart. */
export function SignedIn() {
  const me = present(useMe());
  const name = userOf(me);
  if (!me || name === null) return null;
  const user = <b>{name}</b>;
  const { length: n } = me.groups;
  return (
    <p className="note">
      {n > 0
        ? say("You are signed in as {user}, in {n|the group|the groups} {groups}.", {
            user,
            n,
            groups: me.groups.join(", "),
          })
        : say("You are signed in as {user}.", { user })}
    </p>
  );
}
