import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { send } from "../api/client";
import { asProblem } from "../api/problems";
import { FileField } from "../ui/filefield";
import { texts } from "../ui/form";
import { Icon } from "../ui/icons";
import { say } from "../words/say";

/** Budgets from a CSV file such as the one that the list is saved as: what it would change is shown before anything is.
 * Budgets that it does not name stay as they are. */
export function BudgetFile({ tenant, onDone }: { tenant: string; onDone: () => void }) {
  const client = useQueryClient();
  const [csv, setCsv] = useState<string | null>(null);
  const look = useMutation({
    mutationFn: (text: string) =>
      send("post", tenant, "/budgets", { body: { csv: text, dry_run: true, reason: null } }),
  });
  const write = useMutation({
    mutationFn: ({ text, reason }: { text: string; reason: string }) =>
      send("post", tenant, "/budgets", { body: { csv: text, dry_run: false, reason: reason || null } }),
    onSuccess: () => {
      void client.invalidateQueries();
      onDone();
    },
  });
  const take = (text: string | null) => {
    setCsv(text);
    write.reset();
    if (text === null) look.reset();
    else look.mutate(text);
  };
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (csv !== null) write.mutate({ text: csv, reason: texts(event.currentTarget, "reason").reason });
  };
  const would = look.data;
  const moved = would ? would.created.length + would.changed.length : 0;
  return (
    <form className="form" onSubmit={submit}>
      <FileField onText={take} />
      <div role="status" className="note">
        {would && moved === 0 && say("Every line is as it is: nothing would change.")}
        {would && would.created.length > 0 && <p>{say("New: {names}", { names: would.created.join(", ") })}</p>}
        {would && would.changed.length > 0 && <p>{say("Changed: {names}", { names: would.changed.join(", ") })}</p>}
        {would && would.unchanged > 0 && moved > 0 && (
          <p>{say("{n} {n|other|others} as before", { n: would.unchanged })}</p>
        )}
      </div>
      <Mistakes of={look} />
      <Mistakes of={write} />
      <label>
        {say("Why")}
        <input className="field" name="reason" maxLength={2000} autoComplete="off" />
      </label>
      <button type="submit" className="button primary" disabled={moved === 0 || write.isPending}>
        <Icon name="upload" />
        {moved > 0 ? say("Write {n} {n|budget|budgets}", { n: moved }) : say("Write them")}
      </button>
    </form>
  );
}

/** What is wrong with a file, line by line; nothing of it is used. */
function Mistakes({ of }: { of: { isError: boolean; error: Error | null } }) {
  if (!of.isError) return null;
  const { detail, errors } = asProblem(of.error);
  return (
    <div role="alert" className="bad small">
      {errors && errors.length > 0 ? (
        <ul>
          {errors.map((each) => (
            <li key={each.message}>{each.message}</li>
          ))}
        </ul>
      ) : (
        detail
      )}
    </div>
  );
}
