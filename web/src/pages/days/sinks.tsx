import { useMutation } from "@tanstack/react-query";
import { send } from "../../api/client";
import { useAccess } from "../../api/me";
import { useOf } from "../../api/questions";
import type { Sink } from "../../api/shapes";
import { useHere } from "../../app/router";
import { grouped } from "../../format/formats";
import { eventKind, sinkType } from "../../format/sinks";
import { Card } from "../../ui/card";
import { Refusal } from "../../ui/refusal";
import { Answered } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";

/** Who is told what happens, and whether that works; nothing where nobody is. */
export function Sinks() {
  const here = useHere();
  const tenant = here.tenant ?? "";
  const { may } = useAccess(tenant);
  const found = useOf(tenant, "/notifications", { query: { page_size: 1000 } });
  return (
    <Answered answer={found} skeleton={null}>
      {({ items }) =>
        items.length === 0 ? null : (
          <Card title={say("Who is told")} note={say("{n} {n|sink|sinks}", { n: items.length })}>
            <Table
              label={say("Table of sinks")}
              heads={[
                say("Name"),
                say("Told of"),
                { name: say("Delivered"), end: true },
                { name: say("On the way"), end: true },
                { name: say("Given up"), end: true },
                say("Last error"),
                may("admin") && say("Try [a sink]"),
              ]}
            >
              {items.map((each) => (
                <tr key={each.name}>
                  <th scope="row">
                    {each.name} <span className="quiet small">{sinkType(each.type)}</span>
                  </th>
                  <td className="wordy">{each.kinds?.map(eventKind).join(", ") ?? say("everything")}</td>
                  <td className="end num">{grouped(each.delivered)}</td>
                  <td className="end num">{grouped(each.pending)}</td>
                  <td className="end num">{grouped(each.dead)}</td>
                  <td className="wordy">{each.last_error ?? ""}</td>
                  {may("admin") && (
                    <td>
                      <Try tenant={tenant} sink={each} />
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

function Try({ tenant, sink }: { tenant: string; sink: Sink }) {
  const attempt = useMutation({
    mutationFn: () =>
      send<"post", "/notifications/{sink_name}/test">("post", tenant, "/notifications/{sink_name}/test", {
        at: { sink_name: sink.name },
      }),
  });
  return (
    <>
      <button type="button" className="more" disabled={attempt.isPending} onClick={() => attempt.mutate()}>
        {say("Send a test")}
        <span className="sr">{say(" to {sink}", { sink: sink.name })}</span>
      </button>
      <Refusal of={attempt} />
      <p role="status" className={attempt.data?.error ? "bad small" : "small"}>
        {attempt.data && (attempt.data.error ?? say("It has arrived."))}
      </p>
    </>
  );
}
