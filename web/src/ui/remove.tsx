import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { remove as send } from "../api/client";
import { asProblem } from "../api/problems";

/** Removes something of the API after asking once more; `what` is for readers who do not see the row. */
export function RemoveButton({ href, what }: { href: string; what: string }) {
  const client = useQueryClient();
  const [sure, setSure] = useState(false);
  const remove = useMutation({
    mutationFn: () => send(href),
    onSuccess: () => client.invalidateQueries(),
  });
  if (remove.isError) return <span className="bad small">{asProblem(remove.error).detail}</span>;
  return (
    <button
      type="button"
      className="more"
      disabled={remove.isPending}
      onClick={() => (sure ? remove.mutate() : setSure(true))}
      onBlur={() => setSure(false)}
    >
      {sure ? "Really remove?" : "Remove"}
      <span className="sr"> {what}</span>
    </button>
  );
}
