import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "preact/compat";
import { present } from "../api/answer";
import { useAccess } from "../api/me";
import { useHealth, useTenant, useTenants } from "../api/questions";
import { full } from "../format/days";
import { nameOf } from "../format/health";
import { Icon } from "../ui/icons";
import { Popover } from "../ui/popover";
import { Warning } from "../ui/states";
import { href, ROOT } from "../url/link";
import { extra } from "../url/view";
import { say } from "../words/say";
import { AppearanceButton } from "./appearance";
import { Connection } from "./connection";
import { Finder } from "./finder";
import { Help } from "./help";
import { useKeys } from "./keys";
import { MeButton } from "./me";
import { placeOf, placesFor, titleOf } from "./pages";
import { useHere } from "./router";
import { RunBanner, useFreshFigures, useRun } from "./run";

/** The frame of every page of a tenant. */
export function Shell({ children }: { children: ReactNode }) {
  const { tenant: name, page, view, to } = useHere();
  const tenant = present(useTenant(name ?? ""));
  const [finding, setFinding] = useState(false);
  useKeys();
  useFreshFigures(name ?? "");
  useEffect(() => {
    document.title = `${titleOf(page)} · ${name} · Chargeback`;
  }, [page, name]);

  return (
    <div className="shell">
      <button type="button" className="skip" onClick={() => document.getElementById("main")?.focus()}>
        {say("Skip to the content")}
      </button>
      <header className="head">
        <a className="brand" href={name ? href(name, "costs") : ROOT}>
          <Logo />
          <span className="narrow-sr">{say("Chargeback")}</span>
          <span className="sr">{say(" home")}</span>
        </a>
        <TenantButton />
        <span className="fill" />
        <Freshness last={tenant?.last_date ?? null} />
        <button type="button" className="button" data-key="find" onClick={() => setFinding(true)}>
          <Icon name="search" />
          <span className="narrow-sr quiet">{say("Find anything")}</span>
          <kbd className="wide-only">/</kbd>
        </button>
        <MeButton tenant={name ?? ""} />
        <a className="button square" href={to(extra(view, "help", "words"))}>
          <b aria-hidden="true">?</b>
          <span className="sr">{say("Help")}</span>
        </a>
        <AppearanceButton />
      </header>
      <Navigation />
      <main className="main" id="main" tabIndex={-1}>
        <Title />
        <RunBanner tenant={name ?? ""} />
        <Misread />
        <Connection>{children}</Connection>
        {view.extra.help !== undefined && <Help about={view.extra.help} />}
      </main>
      {finding && <Finder onClose={() => setFinding(false)} />}
    </div>
  );
}

export function Logo() {
  return (
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <rect width="24" height="24" rx="6" fill="var(--accent)" />
      <path d="M7 17v-6M12 17V7M17 17v-4" stroke="var(--on-accent)" strokeWidth="2.6" strokeLinecap="round" />
    </svg>
  );
}

/** Says what of the address could not be understood, and what is shown instead. */
function Misread() {
  const { mistakes } = useHere();
  if (mistakes.length === 0) return null;
  return (
    <Warning>
      {say("The address cannot be read as it is: {mistakes}. The usual is shown instead.", {
        mistakes: mistakes.join("; "),
      })}
    </Warning>
  );
}

function TenantButton() {
  const { tenant } = useHere();
  return (
    <Popover name={say("Tenant")} plain label={<b>{tenant}</b>}>
      {(close) => <Tenants close={close} />}
    </Popover>
  );
}

/** The tenants that the reader may see; below them the way to any other, which is there at once. */
function Tenants({ close }: { close: () => void }) {
  const { tenant, page } = useHere();
  const others = present(useTenants());
  return (
    <ul>
      {others?.map((each) => (
        <li key={each.tenant_name}>
          <a
            href={href(each.tenant_name, page === "item" ? "costs" : page)}
            aria-current={each.tenant_name === tenant ? "true" : undefined}
            onClick={close}
          >
            {each.tenant_name}
          </a>
        </li>
      ))}
      <li>
        <a href={`${ROOT}?choose`} onClick={close}>
          {say("Another tenant …")}
        </a>
      </li>
    </ul>
  );
}

/** What this place is called and for, and its pages. */
function Title() {
  const here = useHere();
  const tenant = here.tenant ?? "";
  const place = placesFor(useAccess(tenant)).find((each) => each.title === placeOf(here.page)?.title);
  const title = titleOf(here.page);
  return (
    <div className="title">
      <h1>
        {place?.title ?? title}
        <span className="sr">
          {place && place.title !== title
            ? say(" – {title} of {tenant}", { title, tenant })
            : say(" of {tenant}", { tenant })}
        </span>
      </h1>
      {place && <p>{place.sentence}</p>}
      {place && place.pages.length > 1 && (
        <nav className="segments" aria-label={say("Pages of {place}", { place: place.title })}>
          {place.pages.map((each) => (
            <a
              key={each.page}
              href={here.to({ ...here.view, extra: {} }, each.page)}
              aria-current={each.page === here.page ? "page" : undefined}
            >
              {each.title}
            </a>
          ))}
        </nav>
      )}
    </div>
  );
}

function Navigation() {
  const { page, tenant, view, to } = useHere();
  const places = placesFor(useAccess(tenant ?? ""));
  const bar = useRef<HTMLElement>(null);
  // Where there is no room for all entries beside each other, the one of this page is in sight.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is another entry
  useLayoutEffect(() => {
    const current = bar.current?.querySelector<HTMLElement>("[aria-current]");
    if (bar.current && current)
      bar.current.scrollLeft = current.offsetLeft - (bar.current.clientWidth - current.offsetWidth) / 2;
  }, [page, places.length]);
  return (
    <nav className="nav" aria-label={say("Places")} ref={bar}>
      <ul>
        {places.map(({ title, icon, pages: [first] }) => (
          <li key={title}>
            <a
              href={tenant ? to({ ...view, extra: {} }, first.page) : ROOT}
              aria-current={title === placeOf(page)?.title ? "page" : undefined}
            >
              <Icon name={icon} />
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Up to which day the figures go, whether a run is on, and the worst of what is wrong. */
function Freshness({ last }: { last: string | null }) {
  const { tenant, to, view } = useHere();
  const name = tenant ?? "";
  const { isOn } = useRun(name);
  const { isKnown, seesAll } = useAccess(name);
  const health = present(useHealth(name, isKnown && seesAll));
  const worst = health?.problems[0];
  if (isOn)
    return (
      <span className="small quiet wide-only">
        <span className="dot ring" /> {say("A run is on")}
      </span>
    );
  if (worst)
    return (
      <a
        className={`state small ${worst.severity === "bad" ? "bad" : "warn"}`}
        href={to({ ...view, extra: {} }, "days")}
      >
        <Icon name="warning" />
        <span className="narrow-sr">{nameOf(worst)}</span>
      </a>
    );
  if (!last) return null;
  return (
    <span className="small quiet num wide-only">
      <span className="dot fine" /> {say("to {day}", { day: full(last) })}
    </span>
  );
}
