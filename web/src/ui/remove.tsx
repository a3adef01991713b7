import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "preact/compat";
import { restating, remove as send } from "../api/client";
import { asProblem } from "../api/problems";
import { say } from "../words/say";
import { ReachesClosed } from "./closed";
import { Drawer } from "./drawer";

/** Removes something of the API after asking once more; `what` is for readers who do not see the row. */
export function RemoveButton({ href, what, headers }: RemoveProps) {
  const client = useQueryClient();
  const [sure, setSure] = useState(false);
  const remove = useMutation({
    mutationFn: (reason: string | null) => send(reason === null ? href : restating(href, reason), headers),
    onSuccess: () => client.invalidateQueries(),
  });
  const problem = remove.isError ? asProblem(remove.error) : null;
  if (problem?.reaching)
    return (
      <Drawer title={say("Remove {what}", { what })} onClose={() => remove.reset()}>
        <ReachesClosed of={problem.reaching} onRestate={remove.mutate} isPending={remove.isPending} />
      </Drawer>
    );
  if (problem) return <span className="bad small">{problem.detail}</span>;
  return (
    <button
      type="button"
      className="more"
      disabled={remove.isPending}
      onClick={() => (sure ? remove.mutate(null) : setSure(true))}
      onBlur={() => setSure(false)}
    >
      {sure ? say("Really remove?") : say("Remove")}
      <span className="sr"> {what}</span>
    </button>
  );
}

interface RemoveProps {
  href: string;
  what: string;
  /** Which version is removed, where the service wants to know. */
  headers?: Readonly<Record<string, string>>;
}
