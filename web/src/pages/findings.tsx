import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { address } from "../api/address";
import { present } from "../api/answer";
import { send } from "../api/client";
import { useAccess } from "../api/me";
import { useOf, useTenant } from "../api/questions";
import type { Finding, FindingList } from "../api/shapes";
import { useCanTag } from "../api/tagging";
import { remember } from "../app/memory";
import { useHere } from "../app/router";
import { full } from "../format/days";
import { UNTAGGED } from "../format/names";
import { refused } from "../format/rights";
import { AuthorField } from "../ui/author";
import { Amount, Card } from "../ui/card";
import { Choice } from "../ui/choice";
import { CsvLink } from "../ui/csv";
import { Drawer } from "../ui/drawer";
import { Chips, FilterButton, LeftAside } from "../ui/filters";
import { texts } from "../ui/form";
import { Refusal } from "../ui/refusal";
import { RemoveButton } from "../ui/remove";
import { Answered, Bone, Empty } from "../ui/states";
import { Table } from "../ui/table";
import { type Filter, has, passes, toggle } from "../url/view";
import { reworded } from "../words/reworded";
import { say } from "../words/say";

const STATES = [
  ["open", say("Open [a finding]")],
  ["snoozed", say("Snoozed")],
  ["all", say("All")],
] as const;
const KINDS: Record<Finding["kind"], string> = {
  topic_without_traffic: say("Topic without traffic"),
  topic_never_read: say("Topic that nobody reads"),
  topic_never_written: say("Topic that nobody writes"),
  idle_resource: say("Idle resource"),
  idle_identity: say("Identity without usage"),
};
const SAVES: Record<Finding["avoidable"], string> = {
  none: say("nothing [is saved]"),
  partial: say("a part [is saved]"),
  full: say("all of it [is saved]"),
};
const CONFIDENCES: Record<Finding["confidence"], string> = {
  high: say("high confidence"),
  medium: say("medium confidence"),
  low: say("low confidence"),
};
const SNOOZE = "/findings/{finding_id}/snooze";
const MIN_DAYS = ["7", "14", "30", "60"];

/** What costs something without being used, what that proves, and what to do about it. */
export function FindingsPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const { may } = useAccess(name);
  const state = STATES.find(([key]) => key === here.view.extra.state)?.[0] ?? "open";
  const days = MIN_DAYS.find((each) => each === here.view.extra.days) ?? "14";
  const query = { min_days: Number(days), state };
  const found = useOf(name, "/findings", { query: { ...query, page_size: 200 } });
  const file = { href: address(name, "/findings.csv", { query }), name: `${name}-findings.csv` };
  return (
    <>
      <div className="tools">
        <Chips />
        <FilterButton tenant={present(useTenant(name))} />
        <Choice name={say("State")} values={STATES} chosen={state} field="state" />
        <Choice
          name={say("Unused for at least")}
          values={MIN_DAYS.map((each) => [each, say("{n} {n|day|days}", { n: Number(each) })] as const)}
          chosen={days}
          field="days"
        />
        <span className="fill" />
        {may("export") && <CsvLink className="button" file={file} />}
      </div>
      <Answered answer={found} skeleton={<Bone height={30} />}>
        {(answer) =>
          answer.items.length === 0 ? (
            <Empty title={state === "snoozed" ? say("Nothing is snoozed") : say("Nothing unused was found")}>
              <p>{say("Only what was measured is judged: a day without measurements says nothing.")}</p>
              {answer.snoozed > 0 && state === "open" && (
                <p>{say("{n} {n|finding|findings} snoozed.", { n: answer.snoozed })}</p>
              )}
            </Empty>
          ) : (
            <Findings answer={answer} />
          )
        }
      </Answered>
    </>
  );
}

/** What a finding has of what the filters of an address name; null for what findings do not know. */
function carried({ subject, kind, tags }: Finding, key: string): string | null | undefined {
  if (key.startsWith("tag:")) return tags[key.slice(4)] ?? UNTAGGED;
  if (key === "identity_id") return kind === "idle_identity" ? subject.id : "";
  if (key === "resource_id") return kind === "idle_identity" ? "" : (subject.cluster_id ?? subject.id);
  if (key === "cluster_id") return subject.cluster_id ?? subject.id;
  return null;
}

/** The findings that match the filters of the address: of each key one of its values, and none that is left out. */
export function matching(items: readonly Finding[], filters: readonly Filter[]): Finding[] {
  return items.filter((item) => passes(filters, (key) => carried(item, key)));
}

const KNOWN = /^(tag:.*|identity_id|resource_id|cluster_id)$/;

function Findings({ answer }: { answer: FindingList }) {
  const { view } = useHere();
  const { currency, total } = answer;
  const items = matching(answer.items, view.filters);
  const [snoozing, setSnoozing] = useState<Finding | null>(null);
  const isAll = answer.items.length === total;
  const { can, why } = useCanSnooze();
  const showsSnoozes = why === "" || items.some((each) => each.snooze);
  return (
    <>
      <LeftAside
        subject={say("Findings")}
        keys={view.filters.map((each) => each.key).filter((key) => !KNOWN.test(key))}
      />
      <Card
        title={
          items.length === answer.items.length
            ? say("{n} {n|finding|findings}", { n: total })
            : say("{some} of {n} {n|finding|findings}", { some: items.length, n: total })
        }
        note={say("the most expensive first; the cost is that of the last 30 days")}
      >
        <Table
          className="tall"
          label={say("Findings")}
          heads={[
            say("What"),
            say("Why"),
            say("Unused since"),
            say("Deleting it saves"),
            { name: say("A month [each month]"), end: true },
            showsSnoozes && say("Snooze"),
          ]}
        >
          {items.map((each) => (
            <Row
              key={each.id}
              finding={each}
              currency={currency}
              snoozes={showsSnoozes && { can, onSnooze: () => setSnoozing(each) }}
            />
          ))}
        </Table>
        {why && <p className="note">{why}</p>}
        {!isAll && <p className="note">{say("Of the first {n}; the file has all.", { n: answer.items.length })}</p>}
        {snoozing && <SnoozeDialog finding={snoozing} onClose={() => setSnoozing(null)} />}
      </Card>
    </>
  );
}

interface RowProps {
  finding: Finding;
  currency: string;
  /** Whether the reader can snooze; false where nothing is snoozed and the reader may not. */
  snoozes: { can: boolean; onSnooze: () => void } | false;
}

function Row({ finding, currency, snoozes }: RowProps) {
  const { evidence, subject, snooze } = finding;
  const what = KINDS[finding.kind];
  return (
    <tr>
      <th scope="row">
        <Subject finding={finding} />
        <div className="quiet small">
          {subject.cluster_id ? say("{what} in {cluster}", { what, cluster: subject.cluster_id }) : what}
          {finding.tags.team && say(", team {team}", { team: finding.tags.team })}
        </div>
      </th>
      <td className="why">
        {reworded(finding.why)}
        <div className="quiet small">{reworded(finding.action)}</div>
      </td>
      <td>
        {full(finding.since)}
        <div className="quiet small">
          {say("{n} measured {n|day|days}", { n: evidence.measured_days })}
          {evidence.unmeasured_days > 0 && say(", {n} not measured", { n: evidence.unmeasured_days })};{" "}
          {CONFIDENCES[finding.confidence]}
        </div>
      </td>
      <td>
        {SAVES[finding.avoidable]}
        {finding.avoidable === "partial" && (
          <>
            : <Amount amount={finding.avoidable_cost} currency={currency} />
          </>
        )}
      </td>
      <td className="end">
        <Amount amount={finding.monthly_cost} currency={currency} />
      </td>
      {snoozes && (
        <td>
          {snooze ? (
            <>
              {snooze.reason}
              <div className="quiet small">
                {snooze.created_by}, {snooze.until ? say("until {day}", { day: full(snooze.until) }) : say("for good")}
              </div>
              <WakeButton finding={finding} />
            </>
          ) : (
            snoozes.can && (
              <button type="button" className="more" onClick={snoozes.onSnooze}>
                {say("Snooze")}
                <span className="sr"> {subject.name ?? subject.id}</span>
              </button>
            )
          )}
        </td>
      )}
    </tr>
  );
}

/** The subject of a finding, as a link to its rows. */
function Subject({ finding }: { finding: Finding }) {
  const here = useHere();
  const { subject, kind } = finding;
  const plain = { ...here.view, filters: [], extra: {} };
  const column = kind === "idle_identity" ? "identity_id" : "resource_id";
  const name = subject.name ?? subject.id;
  const to =
    subject.cluster_id !== null
      ? here.to({ ...plain, extra: { tab: "topics", cluster: subject.cluster_id, topic: name } }, "rows")
      : here.to(has(plain, column, subject.id) ? plain : toggle(plain, column, subject.id), "costs");
  return (
    <a className="more" href={to} title={subject.id}>
      {name}
    </a>
  );
}

function useCanSnooze(): { can: boolean; why: string } {
  const name = useHere().tenant ?? "";
  const { isKnown, may } = useAccess(name);
  return { can: useCanTag(name), why: isKnown && !may("tag") ? refused("tag") : "" };
}

function WakeButton({ finding }: { finding: Finding }) {
  const name = useHere().tenant ?? "";
  const { can } = useCanSnooze();
  if (!can) return null;
  return (
    <RemoveButton
      href={address<typeof SNOOZE, "delete">(name, SNOOZE, { at: { finding_id: finding.id } })}
      what={say("the snooze of {name}", { name: finding.subject.name ?? finding.subject.id })}
    />
  );
}

/** Put a finding off, with a reason that others read. */
function SnoozeDialog({ finding, onClose }: { finding: Finding; onClose: () => void }) {
  const name = useHere().tenant ?? "";
  const client = useQueryClient();
  const snooze = useMutation({
    mutationFn: (body: { reason: string; created_by: string; until?: string }) =>
      send("put", name, SNOOZE, { at: { finding_id: finding.id }, body }),
    onSuccess: () => {
      void client.invalidateQueries();
      onClose();
    },
  });
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { reason, until, author } = texts(event.currentTarget, "reason", "until", "author");
    remember("author", author);
    snooze.mutate({ reason, created_by: author, ...(until ? { until } : {}) });
  };
  return (
    <Drawer title={say("Snooze {name}", { name: finding.subject.name ?? finding.subject.id })} onClose={onClose}>
      <form className="form" onSubmit={onSubmit}>
        <label>
          {say("Reason")}
          <input className="field" name="reason" required maxLength={255} autoComplete="off" />
        </label>
        <label>
          {say("Until this day, or for good")}
          <input className="field" name="until" type="date" />
        </label>
        <AuthorField maxLength={255} />
        <button type="submit" className="button primary" disabled={snooze.isPending}>
          {say("Snooze")}
        </button>
        <Refusal of={snooze} />
      </form>
    </Drawer>
  );
}
