/** What sinks are, and what they are told of. */
import type { Sink } from "../api/shapes";
import { say } from "../words/say";

type EventKind = NonNullable<Sink["kinds"]>[number];

const TYPES: Record<string, string> = {
  webhook: say("Webhook"),
  slack: say("Chat"),
  smtp: say("Mail"),
  alertmanager: say("Alertmanager"),
} satisfies Record<Sink["type"], string>;

/** What a type of sinks is called; one that is not known stays as it is. */
export function sinkType(text: string): string {
  return TYPES[text] ?? text;
}

const KINDS: Record<string, string> = {
  "period.ready": say("months that can be closed"),
  "period.closed": say("closed months"),
  "period.reopened": say("reopened months"),
  "period.sealed": say("sealed months"),
  "correction.posted": say("corrections"),
  "budget.crossed": say("budgets that are reached"),
  "budget.cleared": say("budgets that are no longer reached"),
  "budget.late": say("budgets that are reached by late costs"),
  "anomaly.opened": say("costs that stand out"),
  "anomaly.grew": say("costs that stand out more"),
  "anomaly.resolved": say("costs that no longer stand out"),
  "anomaly.withdrawn": say("costs that stood out by mistake"),
  "shadow.ready": say("complete shadows"),
  "shadow.ended": say("ended shadows"),
  "statement.issued": say("issued statements"),
  "statement.disputed": say("disputed statements"),
  "invoice.differs": say("invoices that differ from the bill"),
  "run.failed": say("failed runs"),
  "tenant.suspended": say("suspensions"),
  "contract.pace": say("contracts that are used too slowly"),
  "contract.exhausted": say("contracts that are used up"),
  "contract.ending": say("contracts that end"),
  "sink.dead": say("sinks that cannot be reached"),
  "digest.weekly": say("weekly digests"),
} satisfies Record<EventKind, string>;

/** What events of a kind are about; one that is not known stays as it is. */
export function eventKind(text: string): string {
  return KINDS[text] ?? text;
}
