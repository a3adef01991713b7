import { QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, Suspense } from "preact/compat";
import { createQueries, missing, present } from "../api/answer";
import { useAccess } from "../api/me";
import { useTenant, useTenants } from "../api/questions";
import { inOneLine } from "../format/rights";
import { CostsPage } from "../pages/costs";
import { Awaited, part } from "../ui/part";
import { Bone, Empty, Missing } from "../ui/states";
import { HOME, href, MONTH_END } from "../url/link";
import { say } from "../words/say";
import { Boundary } from "./errors";
import { SignedIn } from "./me";
import { hasFigures, isWhole } from "./pages";
import { Router, useHere } from "./router";
import { Shell } from "./shell";
import { Start } from "./start";

const LAZY: Record<string, ComponentType> = {
  bill: part(() => import("../pages/bill").then((all) => all.BillPage)),
  item: part(() => import("../pages/item").then((all) => all.ItemPage)),
  statement: part(() => import("../pages/statement").then((all) => all.StatementPage)),
  [MONTH_END]: part(() => import("../pages/monthend").then((all) => all.MonthEndPage)),
  rows: part(() => import("../pages/rows").then((all) => all.RowsPage)),
  unowned: part(() => import("../pages/unowned").then((all) => all.UnownedPage)),
  days: part(() => import("../pages/days").then((all) => all.DaysPage)),
  moments: part(() => import("../pages/moments").then((all) => all.MomentsPage)),
  categories: part(() => import("../pages/categories").then((all) => all.CategoriesPage)),
  tags: part(() => import("../pages/tags").then((all) => all.TagsPage)),
  units: part(() => import("../pages/units").then((all) => all.UnitsPage)),
  findings: part(() => import("../pages/findings").then((all) => all.FindingsPage)),
  topics: part(() => import("../pages/topics").then((all) => all.TopicsPage)),
  map: part(() => import("../pages/map").then((all) => all.MapPage)),
  anomalies: part(() => import("../pages/anomalies").then((all) => all.AnomaliesPage)),
  budgets: part(() => import("../pages/budgets").then((all) => all.BudgetsPage)),
  policies: part(() => import("../pages/policies").then((all) => all.PoliciesPage)),
  views: part(() => import("../pages/views").then((all) => all.ViewsPage)),
};

const FirstRun = part(() => import("../pages/firstrun").then((all) => all.FirstRun));

const queries = createQueries();

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <Router>
        <Boundary>
          <Routes />
        </Boundary>
      </Router>
    </QueryClientProvider>
  );
}

function Routes() {
  const { tenant, page, part } = useHere();
  if (!tenant) return <Start />;
  return (
    <Shell>
      <Boundary key={`${tenant} ${page} ${part ?? ""}`}>
        <TenantPage />
      </Boundary>
    </Shell>
  );
}

function TenantPage() {
  const { tenant, page } = useHere();
  const found = useTenant(tenant ?? "");
  const { isKnown, seesAll } = useAccess(tenant ?? "");
  const unknown = missing(found);
  if (unknown?.problem?.status === 404) return <Unknown />;
  // Who may not see the tenant may not see anything of it: one sentence says so instead of every card.
  if (unknown?.why === "not allowed") return <Missing unknown={unknown} />;
  if (isWhole(page)) {
    if (!isKnown) return <Waiting />;
    if (!seesAll) return <OfTheWhole />;
  }
  const hasNone = hasFigures(page) && present(found)?.last_date === null;
  if (page === HOME && !hasNone) return <CostsPage />;
  const Found = hasNone ? FirstRun : LAZY[page];
  if (!Found) return <Nowhere />;
  return (
    <Suspense fallback={<Waiting />}>
      <Found />
    </Suspense>
  );
}

function Waiting() {
  return (
    <Awaited>
      <Bone height={30} />
    </Awaited>
  );
}

/** Instead of a page that is about the whole bill, for a reader who sees a part of it. */
function OfTheWhole() {
  const here = useHere();
  const { scope } = useAccess(here.tenant ?? "");
  return (
    <Empty title={say("This page is about the whole bill")}>
      <p>
        {say("You see a part of it: {scope}. Its figures are on the other pages.", {
          scope: scope && inOneLine(scope),
        })}
      </p>
      <p>
        <a className="more" href={here.to({ ...here.view, extra: {} }, HOME)}>
          {say("To your costs")}
        </a>
      </p>
    </Empty>
  );
}

function Unknown() {
  const { tenant } = useHere();
  const known = present(useTenants()) ?? [];
  const { user } = useAccess(tenant ?? "");
  return (
    <Empty title={say("There is no tenant “{name}”", { name: tenant ?? "" })}>
      {user !== null && <p>{say("Or there is one, and no role lets you see it.")}</p>}
      <SignedIn />
      {known.length > 0 && (
        <p>
          {say("Known:")}{" "}
          {known.map((each) => (
            <a className="more" key={each.tenant_name} href={href(each.tenant_name, HOME)}>
              {each.tenant_name}{" "}
            </a>
          ))}
        </p>
      )}
    </Empty>
  );
}

function Nowhere() {
  const { tenant } = useHere();
  return (
    <Empty title={say("There is no such page")}>
      <p>
        <a className="more" href={href(tenant ?? "", HOME)}>
          {say("To the costs of {tenant}", { tenant })}
        </a>
      </p>
    </Empty>
  );
}
