import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { address } from "../../api/address";
import { send } from "../../api/client";
import { useAccess } from "../../api/me";
import { asProblem } from "../../api/problems";
import { useOf } from "../../api/questions";
import { addMonths, type Day, firstOfMonth } from "../../calendar/days";
import { full } from "../../format/days";
import { Card } from "../../ui/card";
import { ReachesClosed } from "../../ui/closed";
import { texts } from "../../ui/form";
import { Refusal } from "../../ui/refusal";
import { RemoveButton } from "../../ui/remove";
import { Answered } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";

interface Props {
  tenant: string;
  /** The simulation, and the digest of what was seen of it. */
  id: string;
  digest: string;
  /** The last day that was tried. */
  last: Day;
}

interface Wanted {
  effective_from: string | null;
  reason: string;
  restate_closed: boolean;
}

/** Puts policies in force that were tried: from a day on, exactly those. */
export function Apply({ tenant, id, digest, last }: Props) {
  const client = useQueryClient();
  const [asked, setAsked] = useState<Wanted | null>(null);
  const apply = useMutation({
    mutationFn: (wanted: Wanted) =>
      send<"post", "/policies/apply">("post", tenant, "/policies/apply", {
        body: { simulation: id, expected_digest: digest, ...wanted },
      }),
    onSuccess: () => client.invalidateQueries(),
  });
  const put = (wanted: Wanted) => {
    setAsked(wanted);
    apply.mutate(wanted);
  };
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { begins, reason } = texts(event.currentTarget, "begins", "reason");
    put({ effective_from: begins || null, reason, restate_closed: false });
  };
  const reaching = apply.error && asProblem(apply.error).reaching;
  if (reaching && asked)
    return (
      <Card title={say("Put it in force")}>
        <ReachesClosed
          of={reaching}
          onBegin={(day) => put({ ...asked, effective_from: day })}
          onRestate={(reason) => put({ ...asked, reason, restate_closed: true })}
          isPending={apply.isPending}
        />
      </Card>
    );
  return (
    <Card title={say("Put it in force")} note={say("exactly as it was tried, while nothing of that has changed")}>
      <form className="form" onSubmit={submit}>
        <label>
          {say("First day (empty where the versions say it themselves)")}
          <input
            className="field"
            type="date"
            name="begins"
            defaultValue={addMonths(firstOfMonth(last), 1)}
            key={last}
          />
        </label>
        <label>
          {say("Why")}
          <input className="field" name="reason" required maxLength={255} autoComplete="off" />
        </label>
        <button type="submit" className="button primary" disabled={apply.isPending}>
          {say("Put it in force")}
        </button>
        <Refusal of={apply} />
      </form>
      {apply.data && (
        <p className="note" role="status">
          {say("In force from {days} on.", {
            days: apply.data.versions.map((each) => full(each.effective_from)).join(", "),
          })}
          {apply.data.recalculated.length > 0 &&
            say(" The next run calculates {n} {n|day|days} again.", { n: apply.data.recalculated.length })}
        </p>
      )}
    </Card>
  );
}

const ORIGINS = { configured: say("the configuration"), shipped: say("an upgrade") };

/** The versions of policies; one that was applied and has calculated nothing can be withdrawn. */
export function Versions({ tenant }: { tenant: string }) {
  const { may } = useAccess(tenant);
  const versions = useOf(tenant, "/policies/history", { query: { page_size: 1000 } });
  return (
    <Answered answer={versions} skeleton={null}>
      {({ items }) =>
        items.length === 0 ? null : (
          <Card title={say("Versions")} note={say("{n} {n|version|versions}", { n: items.length })}>
            <Table
              label={say("Table of versions")}
              heads={[
                say("First day"),
                say("Why"),
                say("Products"),
                say("By [who did it]"),
                { name: say("Days"), end: true },
                ...(may("admin") ? [""] : []),
              ]}
            >
              {items.map((each) => (
                <tr key={`${each.effective_from} ${each.source}`}>
                  <th scope="row">{full(each.effective_from)}</th>
                  <td>{each.reason}</td>
                  <td>{each.policies.map((one) => one.product_type).join(", ")}</td>
                  <td className="quiet">{each.applied_by ?? ORIGINS[each.source]}</td>
                  <td className="end num">{each.calculated_days ?? "–"}</td>
                  {may("admin") && (
                    <td>
                      {each.applied_by !== null && each.calculated_days === 0 && (
                        <RemoveButton
                          href={address(tenant, "/policies/applied/{effective_from}", {
                            at: { effective_from: each.effective_from },
                          })}
                          what={say("the version from {day}", { day: full(each.effective_from) })}
                        />
                      )}
                    </td>
                  )}
                </tr>
              ))}
            </Table>
          </Card>
        )
      }
    </Answered>
  );
}
