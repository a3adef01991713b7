import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Because, removeCategory } from "../../api/categories";
import type { Versioned } from "../../api/client";
import { asProblem } from "../../api/problems";
import type { Category } from "../../api/shapes";
import { go, useHere } from "../../app/router";
import { dimension } from "../../format/names";
import { ReachesClosed } from "../../ui/closed";
import { Drawer } from "../../ui/drawer";
import { texts } from "../../ui/form";
import { Refusal } from "../../ui/refusal";
import { CATEGORIES } from "../../url/link";
import { say } from "../../words/say";

/** Remove a category, in the version that is shown: where there is another one by now, the service refuses. */
export function Removal({ found, onClose }: { found: Versioned<Category>; onClose: () => void }) {
  const here = useHere();
  const client = useQueryClient();
  const { key, version } = found.body;
  const title = dimension(`category:${key}`);
  const remove = useMutation({
    mutationFn: (because: Because) => removeCategory(here.tenant ?? "", key, because, found.etag),
    onSuccess: async () => {
      onClose();
      go(here.to({ ...here.view, extra: {} }, CATEGORIES));
      await client.invalidateQueries();
    },
  });
  const reaching = remove.isError ? asProblem(remove.error).reaching : null;
  return (
    <Drawer title={say("Remove {name}", { name: title })} onClose={onClose}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          remove.mutate(texts(event.currentTarget, "reason"));
        }}
      >
        <p className="note">
          {say(
            "No page, file or statement divides costs by {category} any more, and a saved view or a scope that names it finds nothing. Costs stay as they are.",
            { category: title },
          )}{" "}
          {version === 1
            ? say("The version stays in the history.")
            : say("The {n} versions stay in the history.", { n: version })}
        </p>
        <label>
          {say("Reason")}
          <input className="field" name="reason" maxLength={2000} autoComplete="off" />
        </label>
        <button type="submit" className="button primary" disabled={remove.isPending}>
          {say("Remove {name}", { name: title })}
        </button>
        {reaching === null && <Refusal of={remove} />}
      </form>
      {reaching && (
        <ReachesClosed
          of={reaching}
          onRestate={(reason) => remove.mutate({ reason, restates: true })}
          isPending={remove.isPending}
        />
      )}
    </Drawer>
  );
}
