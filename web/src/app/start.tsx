import { type FormEvent, useEffect } from "preact/compat";
import { missing, present } from "../api/answer";
import { useMe, userOf } from "../api/me";
import { useTenants } from "../api/questions";
import { full } from "../format/days";
import { Missing } from "../ui/states";
import { HOME, href } from "../url/link";
import { say } from "../words/say";
import { SignedIn } from "./me";
import { remember, remembered } from "./memory";
import { go } from "./router";
import { Logo } from "./shell";

/** The page without a tenant: to the only one, or to a choice; or a name to type where the list is not for everyone. */
export function Start() {
  const tenants = useTenants();
  const user = userOf(present(useMe()));
  const unknown = missing(tenants);
  const listed = present(tenants);
  const only = listed?.length === 1 && !location.search ? listed[0] : null;
  useEffect(() => {
    document.title = say("Chargeback");
    if (only) go(href(only.tenant_name, HOME), { replace: true });
  }, [only]);
  const choose = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("tenant")).trim();
    if (!name) return;
    remember("tenant", name);
    go(href(name, HOME));
  };
  const closed = unknown?.problem?.status === 403;
  return (
    <main className="start" id="main">
      <h1>
        <Logo /> {say("Chargeback")}
      </h1>
      {listed && (
        <ul className="card menu">
          {listed.map((each) => (
            <li key={each.tenant_name}>
              <a href={href(each.tenant_name, HOME)}>
                {each.tenant_name}
                <span className="end">
                  {each.last_calculated_date
                    ? say("to {day}", { day: full(each.last_calculated_date) })
                    : say("nothing calculated yet")}
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
      {listed?.length === 0 && (user === null ? <p>{say("No tenant is configured.")}</p> : <NoRole />)}
      {listed && <SignedIn />}
      {unknown && !closed && <Missing unknown={unknown} />}
      {closed && (
        <form className="card form" onSubmit={choose}>
          <p>{say("You may not see the list of tenants. Type the name of yours.")}</p>
          <label>
            {say("Tenant")}
            <input
              className="field"
              name="tenant"
              required
              defaultValue={remembered("tenant") ?? ""}
              autoComplete="off"
            />
          </label>
          <button type="submit" className="button primary">
            {say("Open [a tenant]")}
          </button>
        </form>
      )}
    </main>
  );
}

function NoRole() {
  return (
    <section className="card empty">
      <h2>{say("Nothing to see yet")}</h2>
      <p>{say("No role of this service lets you see a tenant. Ask whoever runs it for one.")}</p>
    </section>
  );
}
