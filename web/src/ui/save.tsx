import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "preact/compat";
import { address } from "../api/address";
import { send } from "../api/client";
import { asProblem } from "../api/problems";
import { remember } from "../app/memory";
import { useHere } from "../app/router";
import { writeView } from "../url/view";
import { say } from "../words/say";
import { AuthorField } from "./author";
import { texts } from "./form";
import { Popover } from "./popover";

/** Save the page with its period, comparison and filters under a name, for everyone who sees the tenant. */
export function SaveButton() {
  return (
    <Popover name={say("Save view")} icon="save" bare label={<span className="narrow-sr">{say("Save view")}</span>}>
      {() => <SaveForm />}
    </Popover>
  );
}

function SaveForm() {
  const here = useHere();
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: (body: Record<"name" | "page" | "query" | "created_by", string>) =>
      send("post", here.tenant ?? "", "/views", { body }),
    onSuccess: () => client.invalidateQueries({ queryKey: [address(here.tenant ?? "", "/views")] }),
  });
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { name, author } = texts(event.currentTarget, "name", "author");
    remember("author", author);
    save.mutate({ name, page: here.page, query: writeView(here.view).slice(1), created_by: author });
  };
  return (
    <form onSubmit={onSubmit}>
      <label>
        {say("Name")}
        <input className="field" name="name" required maxLength={200} autoComplete="off" />
      </label>
      <AuthorField maxLength={200} />
      <button type="submit" className="button primary" disabled={save.isPending}>
        {say("Save")}
      </button>
      <p role="status" className={save.isError ? "bad small" : "note"}>
        {save.isError && asProblem(save.error).detail}
        {save.isSuccess && (
          <>
            {say("Saved.")}{" "}
            <a className="more" href={here.to({ ...here.view, extra: {} }, "views")}>
              {say("All views")}
            </a>
          </>
        )}
      </p>
    </form>
  );
}
