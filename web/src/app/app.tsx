import { QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, lazy, Suspense } from "react";
import { createQueries, missing, present } from "../api/answer";
import { useAccess } from "../api/me";
import { useTenant, useTenants } from "../api/questions";
import { inOneLine } from "../format/rights";
import { CostsPage } from "../pages/costs";
import { Bone, Empty, Loading, Missing } from "../ui/states";
import { HOME, href, MONTH_END } from "../url/link";
import { say } from "../words/say";
import { Boundary } from "./errors";
import { SignedIn } from "./me";
import { hasFigures, isWhole } from "./pages";
import { Router, useHere } from "./router";
import { Shell } from "./shell";
import { Start } from "./start";

const LAZY: Record<string, ComponentType> = {
  bill: lazy(() => import("../pages/bill").then((all) => ({ default: all.BillPage }))),
  item: lazy(() => import("../pages/item").then((all) => ({ default: all.ItemPage }))),
  statement: lazy(() => import("../pages/statement").then((all) => ({ default: all.StatementPage }))),
  [MONTH_END]: lazy(() => import("../pages/monthend").then((all) => ({ default: all.MonthEndPage }))),
  rows: lazy(() => import("../pages/rows").then((all) => ({ default: all.RowsPage }))),
  unowned: lazy(() => import("../pages/unowned").then((all) => ({ default: all.UnownedPage }))),
  days: lazy(() => import("../pages/days").then((all) => ({ default: all.DaysPage }))),
  moments: lazy(() => import("../pages/moments").then((all) => ({ default: all.MomentsPage }))),
  categories: lazy(() => import("../pages/categories").then((all) => ({ default: all.CategoriesPage }))),
  tags: lazy(() => import("../pages/tags").then((all) => ({ default: all.TagsPage }))),
  units: lazy(() => import("../pages/units").then((all) => ({ default: all.UnitsPage }))),
  findings: lazy(() => import("../pages/findings").then((all) => ({ default: all.FindingsPage }))),
  topics: lazy(() => import("../pages/topics").then((all) => ({ default: all.TopicsPage }))),
  map: lazy(() => import("../pages/map").then((all) => ({ default: all.MapPage }))),
  anomalies: lazy(() => import("../pages/anomalies").then((all) => ({ default: all.AnomaliesPage }))),
  budgets: lazy(() => import("../pages/budgets").then((all) => ({ default: all.BudgetsPage }))),
  policies: lazy(() => import("../pages/policies").then((all) => ({ default: all.PoliciesPage }))),
  views: lazy(() => import("../pages/views").then((all) => ({ default: all.ViewsPage }))),
};

const FirstRun = lazy(() => import("../pages/firstrun").then((all) => ({ default: all.FirstRun })));

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
    <Loading>
      <Bone height={30} />
    </Loading>
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
