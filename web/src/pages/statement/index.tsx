import { useStatement, useStatements, useTenant } from "../../api/questions";
import type { Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { firstOfMonth } from "../../calendar/days";
import { month } from "../../format/days";
import { Answered, Bone, Empty } from "../../ui/states";
import { Toolbar } from "../../ui/toolbar";
import { billed, wholeMonths } from "../../url/period";
import { say } from "../../words/say";
import { leadingTag } from "../costs/facts";
import { isStated, JOURNAL, VALUE } from "./address";
import { StatementView } from "./document";
import { JournalView } from "./journal";
import { List } from "./list";

/** The statements of a month: all of them, the one of a value, or the journal that they are booked by. */
export function StatementPage() {
  const { tenant: name } = useHere();
  const tenant = useTenant(name ?? "");
  return (
    <Answered answer={tenant} skeleton={<Bone height={30} />}>
      {(found) =>
        found.last_date ? (
          <OfMonth tenant={found} last={found.last_date} />
        ) : (
          <Empty title={say("There are no statements yet")}>
            <p>{say("They appear when the first day is calculated.")}</p>
          </Empty>
        )
      }
    </Answered>
  );
}

function OfMonth({ tenant, last }: { tenant: Tenant; last: string }) {
  const { view } = useHere();
  const { end } = billed(view, tenant.first_date, last);
  const period = firstOfMonth(end).slice(0, 7);
  const asked = view.by ?? leadingTag(tenant) ?? "identity_id";
  const by = isStated(asked) ? asked : "identity_id";
  const value = view.extra[VALUE];
  const shown = wholeMonths({ start: end, end });
  return (
    <>
      <Toolbar shown={shown} usual={say("The last whole month")} compare={false} filters={false} />
      {value !== undefined ? (
        <One tenant={tenant.tenant_name} period={period} by={by} value={value} />
      ) : view.extra.tab === JOURNAL ? (
        <JournalView tenant={tenant.tenant_name} period={period} by={by} />
      ) : (
        <OfAll tenant={tenant.tenant_name} period={period} by={by} />
      )}
    </>
  );
}

function One({ tenant, period, by, value }: { tenant: string; period: string; by: string; value: string }) {
  const query = useStatement(tenant, period, by, value);
  return (
    <Answered answer={query} skeleton={<Bone height={40} />}>
      {(found) => <StatementView found={found} />}
    </Answered>
  );
}

function OfAll({ tenant, period, by }: { tenant: string; period: string; by: string }) {
  const query = useStatements(tenant, period, by);
  return (
    <Answered answer={query} skeleton={<Bone height={30} />}>
      {(found) =>
        found.items.length === 0 ? (
          <Empty title={say("No costs in {month}", { month: month(found.start_date) })}>
            <p>{say("Choose another month.")}</p>
          </Empty>
        ) : (
          <List found={found} />
        )
      }
    </Answered>
  );
}
