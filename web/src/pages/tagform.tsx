import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { tell } from "../api/client";
import { asProblem } from "../api/problems";
import { tenantPath } from "../api/questions";
import type { BulkResult } from "../api/shapes";
import { remember } from "../app/memory";
import { useHere } from "../app/router";
import { count } from "../format/days";
import { AuthorField } from "../ui/author";

interface Entity {
  type: string;
  id: string;
  name: string | null;
}

interface Wish {
  items: { entity_type: string; entity_id: string; tag_key: string; tag_value: string }[];
  created_by: string;
  override_existing: boolean;
}

/** Tag several things at once; what changes is shown before it is written. */
export function TagForm({ entities }: { entities: readonly Entity[] }) {
  const { tenant } = useHere();
  const client = useQueryClient();
  const [wish, setWish] = useState<Wish | null>(null);
  const write = useMutation({
    mutationFn: (body: Wish) => tell<BulkResult>("POST", tenantPath(tenant ?? "", "tags/bulk"), body),
    onSuccess: () => client.invalidateQueries(),
  });

  const preview = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: string) => String(data.get(name) ?? "").trim();
    const chosen = data.getAll("entity").map(String);
    remember("author", text("author"));
    write.reset();
    setWish({
      items: entities
        .filter((each) => chosen.includes(each.id))
        .map((each) => ({
          entity_type: each.type,
          entity_id: each.id,
          tag_key: text("key"),
          tag_value: text("value"),
        })),
      created_by: text("author"),
      override_existing: data.get("override") !== null,
    });
  };

  return (
    <form className="tagform" onSubmit={preview} onChange={() => setWish(null)}>
      <fieldset>
        <legend className="sr">What to tag</legend>
        {entities.map((each) => (
          <label key={each.id} className="check">
            <input type="checkbox" name="entity" value={each.id} /> {each.name ?? each.id}
            {each.name && <span className="quiet small"> {each.id}</span>}
          </label>
        ))}
      </fieldset>
      <div className="form">
        <label>
          Key
          <input className="field" name="key" defaultValue="team" required maxLength={255} />
        </label>
        <label>
          Value
          <input className="field" name="value" required maxLength={255} />
        </label>
        <AuthorField maxLength={255} />
        <label className="check">
          <input type="checkbox" name="override" /> replace values that are there
        </label>
        <button type="submit" className="button">
          Preview
        </button>
      </div>
      {wish && <Preview wish={wish} busy={write.isPending} onWrite={() => write.mutate(wish)} />}
      <p role="status" className={write.isError ? "bad" : "note"}>
        {write.isError && asProblem(write.error).detail}
        {write.data &&
          `${write.data.created_count} created, ${write.data.updated_count} changed, ${write.data.skipped_count} left as they were.`}
      </p>
    </form>
  );
}

function Preview({ wish, busy, onWrite }: { wish: Wish; busy: boolean; onWrite: () => void }) {
  const [first] = wish.items;
  if (!first) return <p className="note">Choose at least one.</p>;
  return (
    <p className="banner">
      {count(wish.items.length, "thing")} will have the tag{" "}
      <b>
        {first.tag_key}: {first.tag_value}
      </b>
      {wish.override_existing ? "; a value that is there is replaced." : "; a value that is there stays."}
      <button type="button" className="button primary" disabled={busy} onClick={onWrite}>
        Write
      </button>
    </p>
  );
}
