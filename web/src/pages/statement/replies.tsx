import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { send } from "../../api/client";
import { useAccess } from "../../api/me";
import { statementOf } from "../../api/questions";
import type { Statement, StatementRow } from "../../api/shapes";
import { remember } from "../../app/memory";
import { full, instant } from "../../format/days";
import { AuthorField } from "../../ui/author";
import { Card } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { texts } from "../../ui/form";
import { Refusal } from "../../ui/refusal";
import { say } from "../../words/say";

type Said = "acknowledge" | "dispute";

const VERDICTS = { acknowledged: say("Acknowledged"), disputed: say("Disputed") } as const;
const WORDS: Record<Said, string> = { acknowledge: say("Acknowledge"), dispute: say("Dispute") };

/** What a statement is at: what was said last of what it says now. */
export function verdictOf(found: Pick<Statement, "verdict" | "replies">): string {
  if (found.verdict) return VERDICTS[found.verdict];
  return found.replies?.length
    ? say("Changed since: what it says now is neither acknowledged nor disputed")
    : say("Neither acknowledged nor disputed");
}

/** The same in a list, where only the last reply is known; nothing where the reader may not see whether there is one. */
export function saidOf({ verdict, last_reply: last }: Pick<StatementRow, "verdict" | "last_reply">, seesAll: boolean) {
  const name = last?.created_by ?? "";
  const isDisputed = last?.verdict === "disputed";
  if (last?.is_current)
    return isDisputed ? say("Disputed by {name}", { name }) : say("Acknowledged by {name}", { name });
  if (verdict) return VERDICTS[verdict];
  if (!last) return seesAll ? say("No reply") : null;
  return isDisputed
    ? say("Changed since {name} disputed it", { name })
    : say("Changed since {name} acknowledged it", { name });
}

/** How many of some statements are at what: `1 disputed, 2 acknowledged, 7 open`. */
export function verdictsOf(items: readonly Pick<StatementRow, "verdict">[]): string {
  const number = (verdict: StatementRow["verdict"]) => items.filter((each) => each.verdict === verdict).length;
  const [disputed, acknowledged, open] = [number("disputed"), number("acknowledged"), number(null)];
  return [
    disputed > 0 && say("{n} disputed", { n: disputed }),
    acknowledged > 0 && say("{n} acknowledged", { n: acknowledged }),
    open > 0 && say("{n} open [statements]", { n: open }),
  ]
    .filter(Boolean)
    .join(", ");
}

/** What the recipient says of a statement, and the buttons to say it. Nothing for who sees a part of the statement. */
export function Replies({ found }: { found: Statement }) {
  const [said, setSaid] = useState<Said | null>(null);
  const { may } = useAccess(found.tenant_name);
  if (found.replies === null) return null;
  return (
    <Card
      title={say("What the recipient says")}
      note={verdictOf(found)}
      action={may("read") && <Buttons onSay={setSaid} />}
    >
      {found.replies.length === 0 ? (
        <p className="note">
          {say("Nothing yet. Who receives this statement can acknowledge it, or dispute it with a note.")}
        </p>
      ) : (
        <ul>
          {found.replies.map((each) => (
            <li key={`${each.created_at} ${each.number} ${each.verdict}`}>
              {say("{verdict} by {name}: {note}", {
                verdict: <strong>{VERDICTS[each.verdict]}</strong>,
                name: each.created_by,
                note: each.note,
              })}
              <span className="quiet small">
                {" "}
                {each.number}, {instant(each.created_at)}
                {each.data_through && say(", with data through {day}", { day: full(each.data_through) })}
                {!each.is_current && say(", to a former content")}
              </span>
            </li>
          ))}
        </ul>
      )}
      {said && <ReplyDialog found={found} said={said} onClose={() => setSaid(null)} />}
    </Card>
  );
}

function Buttons({ onSay }: { onSay: (said: Said) => void }) {
  return (
    <>
      <button type="button" className="button" onClick={() => onSay("acknowledge")}>
        {WORDS.acknowledge}
      </button>
      <button type="button" className="button" onClick={() => onSay("dispute")}>
        {WORDS.dispute}
      </button>
    </>
  );
}

/** Reply to the content that is shown: where there is another one by now, the service refuses. */
function ReplyDialog({ found, said, onClose }: { found: Statement; said: Said; onClose: () => void }) {
  const client = useQueryClient();
  const reply = useMutation({
    mutationFn: (body: Record<"note" | "created_by" | "number" | "digest", string>) =>
      send("post", found.tenant_name, `/statement/${said}`, {
        ...statementOf(found.period, found.by, found.recipient.value),
        body,
      }),
    onSuccess: () => {
      void client.invalidateQueries();
      onClose();
    },
  });
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { note, author } = texts(event.currentTarget, "note", "author");
    remember("author", author);
    reply.mutate({ note, created_by: author, number: found.number, digest: found.digest });
  };
  const { number } = found;
  return (
    <Drawer
      title={said === "dispute" ? say("Dispute {number}", { number }) : say("Acknowledge {number}", { number })}
      onClose={onClose}
    >
      <form className="form" onSubmit={onSubmit}>
        <label>
          {say("Note")}
          <input className="field" name="note" required maxLength={255} autoComplete="off" />
        </label>
        <AuthorField maxLength={255} />
        <button type="submit" className="button primary" disabled={reply.isPending}>
          {WORDS[said]}
        </button>
        <Refusal of={reply} />
      </form>
    </Drawer>
  );
}
