import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { address } from "../api/address";
import { present } from "../api/answer";
import { useCategories } from "../api/categories";
import { getVersion, ifStill, send } from "../api/client";
import { useAccess } from "../api/me";
import { useOf, useTenant } from "../api/questions";
import type { Budget, BudgetStatus } from "../api/shapes";
import { useHere } from "../app/router";
import { addMonths } from "../calendar/days";
import { BUDGET_STATES } from "../format/budgets";
import { full, month as monthName } from "../format/days";
import { dimension, isCategory } from "../format/names";
import { read } from "../money/money";
import { Amount, Card, share } from "../ui/card";
import { Drawer } from "../ui/drawer";
import { texts } from "../ui/form";
import { Refusal } from "../ui/refusal";
import { RemoveButton } from "../ui/remove";
import { Answered, Bone } from "../ui/states";
import { Table } from "../ui/table";
import { HOME } from "../url/link";
import { filterKey, type View } from "../url/view";
import { say } from "../words/say";
import { BudgetFile } from "./budgetfile";
import { Contracts, short } from "./contracts";

const MONTH = /^\d{4}-\d{2}$/;

const CROSSED: Record<BudgetStatus["crossed"][number]["on"], (percent: string) => string> = {
  actual: (percent) => say("{percent} % charged", { percent }),
  pace: (percent) => say("{percent} % of the same days", { percent }),
  forecast: (percent) => say("{percent} % forecast", { percent }),
};

/** What months may cost, and how far they are. */
export function BudgetsPage() {
  const here = useHere();
  const tenant = here.tenant ?? "";
  const { may, seesAll } = useAccess(tenant);
  const [edited, setEdited] = useState<Budget | "new" | "file" | null>(null);
  const close = () => setEdited(null);
  const month = here.view.period !== null && MONTH.test(here.view.period) ? here.view.period : undefined;
  const query = { page_size: 1000, ...(month && { month }) };
  const found = useOf(tenant, "/budgets", { query });
  const edits = may("admin") && seesAll;
  const file = { href: address(tenant, "/budgets.csv"), name: `${tenant}-budgets.csv` };
  const add = (
    <>
      <button type="button" className="button" onClick={() => setEdited("file")}>
        {say("From a file")}
      </button>
      <button type="button" className="button" onClick={() => setEdited("new")}>
        {say("Add a budget")}
      </button>
    </>
  );
  return (
    <>
      <Answered answer={found} skeleton={<Bone height={16} />}>
        {({ items }) => (
          <Card
            title={say("Budgets")}
            note={noteOf(items)}
            action={edits && add}
            file={items.length > 0 ? file : undefined}
          >
            {items.length === 0 ? (
              <p className="note">
                {say(
                  "None yet. A budget says what a month may cost: of all costs, or of a cost centre, a team or a product.",
                )}
              </p>
            ) : (
              <Budgets tenant={tenant} items={items} onEdit={edits ? setEdited : null} />
            )}
          </Card>
        )}
      </Answered>
      <Contracts />
      {edited === "file" && (
        <Drawer title={say("Budgets from a CSV file")} onClose={close}>
          <BudgetFile tenant={tenant} onDone={close} />
        </Drawer>
      )}
      {edited !== null && edited !== "file" && (
        <Drawer
          title={edited === "new" ? say("Add a budget") : say("Change {name}", { name: edited.name })}
          onClose={close}
        >
          <BudgetForm tenant={tenant} of={edited === "new" ? null : edited} onDone={close} />
        </Drawer>
      )}
    </>
  );
}

function noteOf(items: readonly Budget[]): string {
  const [first] = items;
  if (!first) return "";
  const { period_id, data_through, missing_days } = first.status;
  const through = data_through ? say("until {day}", { day: full(data_through) }) : say("no day yet");
  const missing = missing_days.length > 0 && say("{n} {n|day|days} missing", { n: missing_days.length });
  return [monthName(period_id), through, missing].filter(Boolean).join(", ");
}

interface BudgetsProps {
  tenant: string;
  items: readonly Budget[];
  /** Nothing for who may not change them. */
  onEdit: ((budget: Budget) => void) | null;
}

function Budgets({ tenant, items, onEdit }: BudgetsProps) {
  const here = useHere();
  const period = items[0]?.status.period_id ?? "";
  const other = (months: number) => {
    const id = addMonths(`${period}-01`, months).slice(0, 7);
    return (
      <a className="more" href={here.to({ ...here.view, period: id, start: null, end: null })}>
        {monthName(id)}
      </a>
    );
  };
  return (
    <>
      <Table
        label={say("Table of budgets")}
        heads={[
          say("Budget"),
          { name: say("To date"), end: true },
          { name: say("Budget"), end: true },
          { name: say("Used [of an amount]"), end: true },
          { name: say("Same days"), end: true },
          { name: say("Forecast"), end: true },
          say("State"),
          onEdit !== null && say("Change [a column of buttons]"),
        ]}
      >
        {ordered(items).map(({ budget, depth }) => (
          <Row key={budget.id} tenant={tenant} budget={budget} depth={depth} onEdit={onEdit} />
        ))}
      </Table>
      <p className="note">
        {other(-1)} · {other(1)}
      </p>
    </>
  );
}

interface RowProps extends Omit<BudgetsProps, "items"> {
  budget: Budget;
  depth: number;
}

function Row({ tenant, budget, depth, onEdit }: RowProps) {
  const here = useHere();
  const { status } = budget;
  const [words, tone] = BUDGET_STATES[status.state];
  const amount = (text: string | null) =>
    text === null ? <span className="quiet">–</span> : <Amount amount={read(text)} currency={status.currency} />;
  return (
    <tr>
      <th scope="row" style={{ paddingInlineStart: `${0.75 + depth * 1.25}rem` }}>
        <a className="more" href={here.to(viewOf(here.view, budget), HOME)} title={budget.id}>
          {budget.name}
        </a>
        <span className="quiet small"> {scopeText(budget)}</span>
      </th>
      <td className="end">{amount(status.to_date)}</td>
      <td className="end">{amount(status.budget)}</td>
      <td className="end num">{status.budget === null ? null : share(read(status.to_date), read(status.budget))}</td>
      <td className="end">{amount(status.budget_to_date)}</td>
      <td className="end">
        {amount(status.forecast)}
        {budget.expected[status.period_id] !== undefined && (
          <div className="quiet small">
            {say("expected by {who}; calculated {amount}", {
              who: budget.who,
              amount: amount(status.calculated_forecast),
            })}
          </div>
        )}
      </td>
      <td className="why">
        <span className={tone}>{words}</span>
        {status.crossed.length > 0 && (
          <span className="quiet small">
            {" "}
            {status.crossed.map((each) => CROSSED[each.on](short(each.percent))).join(", ")}
          </span>
        )}
      </td>
      {onEdit && (
        <td>
          <button type="button" className="more" onClick={() => onEdit(budget)}>
            {say("Edit")}
            <span className="sr"> {budget.name}</span>
          </button>{" "}
          <RemoveButton
            href={address(tenant, "/budgets/{budget_id}", { at: { budget_id: budget.id } })}
            headers={{ "If-Match": "*" }}
            what={budget.name}
          />
        </td>
      )}
    </tr>
  );
}

/** The budgets as a tree: each below the one that it is a part of, by name. */
export function ordered(items: readonly Budget[]): { budget: Budget; depth: number }[] {
  const known = new Set(items.map((each) => each.id));
  const below = (parent: string | null, depth: number): { budget: Budget; depth: number }[] =>
    items
      .filter((each) => (each.parent !== null && known.has(each.parent) ? each.parent : null) === parent)
      .sort((a, b) => a.name.localeCompare(b.name))
      .flatMap((budget) => [{ budget, depth }, ...below(budget.id, depth + 1)]);
  return below(null, 0);
}

/** Its costs in its month. */
function viewOf(view: View, { scope, status }: Budget): View {
  const filters = Object.entries(scope).flatMap(([name, values]) =>
    values.map((value) => ({ key: filterKey(name), value, not: false })),
  );
  return { ...view, filters, period: status.period_id, start: null, end: null, by: null, extra: {} };
}

function scopeText({ scope }: Budget): string {
  const conditions = Object.entries(scope).map(([name, values]) => `${dimension(name)}: ${values.join(", ")}`);
  return conditions.join("; ") || say("all costs");
}

interface FormProps {
  tenant: string;
  /** Null for a new one. */
  of: Budget | null;
  onDone: () => void;
}

const COLUMNS = ["product_category", "identity_id", "environment_id", "cluster_id", "resource_id"];

/** An id that is made of a name. */
export function idOf(name: string): string {
  const plain = name
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9]+/g, "-");
  return plain.replace(/^-+|-+$/g, "").slice(0, 64);
}

/** The percentages of a text such as `80, 100`. */
export function percentages(text: string): string[] {
  return text.split(/[\s,;%]+/).filter(Boolean);
}

function BudgetForm({ tenant, of, onDone }: FormProps) {
  const client = useQueryClient();
  const tags = present(useTenant(tenant))?.tag_keys.map((each) => `tag:${each.key}`);
  const categories = present(useCategories(tenant))?.items.map((each) => `category:${each.key}`);
  const columns = [categories, tags, COLUMNS].filter((each) => each !== undefined).flat();
  const put = useMutation({
    mutationFn: async (said: Said) => {
      const id = of?.id ?? idOf(said.name);
      const at = { budget_id: id };
      const headers = of ? await ifStill(of.version, getVersion(tenant, "/budgets/{budget_id}", { at })) : {};
      const thresholds = [
        ...percentages(said.actual).map((percent) => ({ on: "actual" as const, percent })),
        ...percentages(said.expected).map((percent) => ({ on: "forecast" as const, percent })),
        ...(of ? of.thresholds.filter((each) => each.on === "pace") : []),
      ];
      const values = said.values.split(",").map((each) => each.trim());
      const scope = of ? of.scope : said.by ? { [said.by]: values.filter(Boolean) } : {};
      return send("put", tenant, "/budgets/{budget_id}", {
        at,
        headers,
        body: {
          name: said.name,
          scope,
          parent: of?.parent ?? null,
          amounts: of?.amounts ?? {},
          monthly: said.monthly || null,
          thresholds,
          notify: of ? of.notify : [],
          expected: of?.expected ?? {},
          reason: said.reason || null,
        },
      });
    },
    onSuccess: () => {
      void client.invalidateQueries();
      onDone();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    put.mutate(texts(event.currentTarget, "name", "by", "values", "monthly", "actual", "expected", "reason"));
  };
  const percents = (on: "actual" | "forecast", usual: string) =>
    of
      ? of.thresholds
          .filter((each) => each.on === on)
          .map((each) => each.percent)
          .join(", ")
      : usual;
  return (
    <form className="form" onSubmit={submit}>
      <label>
        {say("Name")}
        <input className="field" name="name" required maxLength={255} autoComplete="off" defaultValue={of?.name} />
      </label>
      {of === null && (
        <>
          <label>
            {say("Of which costs")}
            <select className="field" name="by" defaultValue="">
              <option value="">{say("All")}</option>
              {columns.map((each) => (
                <option key={each} value={each}>
                  {isCategory(each)
                    ? say("Cost category {name}", { name: each.replace("category:", "") })
                    : dimension(each)}
                </option>
              ))}
            </select>
          </label>
          <label>
            {say("With one of these values (commas between them)")}
            <input className="field" name="values" autoComplete="off" />
          </label>
        </>
      )}
      <label>
        {say("A month may cost")}
        <input
          className="field"
          name="monthly"
          inputMode="decimal"
          autoComplete="off"
          defaultValue={of?.monthly ?? ""}
        />
      </label>
      <label>
        {say("Tell when so many percent are charged")}
        <input className="field" name="actual" autoComplete="off" defaultValue={percents("actual", "80, 100")} />
      </label>
      <label>
        {say("Tell when the forecast reaches so many percent")}
        <input className="field" name="expected" autoComplete="off" defaultValue={percents("forecast", "100")} />
      </label>
      <label>
        {say("Why")}
        <input className="field" name="reason" maxLength={2000} autoComplete="off" />
      </label>
      <button type="submit" className="button primary" disabled={put.isPending}>
        {of ? say("Change it") : say("Add it")}
      </button>
      <Refusal of={put} />
    </form>
  );
}

type Said = Record<"name" | "by" | "values" | "monthly" | "actual" | "expected" | "reason", string>;
