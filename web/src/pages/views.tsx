import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { tell } from "../api/client";
import { asProblem } from "../api/problems";
import { tenantPath, useViews } from "../api/questions";
import type { SavedView } from "../api/shapes";
import { remember } from "../app/memory";
import { PAGES, titleOf } from "../app/pages";
import { useHere } from "../app/router";
import { instant } from "../format/days";
import { AuthorField } from "../ui/author";
import { Card } from "../ui/card";
import { Chips } from "../ui/filters";
import { named } from "../ui/period";
import { Answered, Bone } from "../ui/states";
import { Table } from "../ui/table";
import { readView, writeView } from "../url/view";

/** Views that somebody saved under a name, for everyone who may see the tenant. */
export function ViewsPage() {
  const { tenant } = useHere();
  const query = useViews(tenant ?? "");
  return (
    <>
      <Save />
      <Card title="Saved views" note="for everyone who sees this tenant">
        <Answered query={query} skeleton={<Bone height={12} />}>
          {({ items }) =>
            items.length === 0 ? (
              <p className="note">None yet. Choose a period and filters on any page, come here and save them.</p>
            ) : (
              <Table label="Table of views" heads={["Name", "Page", "By", "Since", "Change"]}>
                {items.map((each) => (
                  <OneView key={each.id} {...each} />
                ))}
              </Table>
            )
          }
        </Answered>
      </Card>
    </>
  );
}

function OneView({ id, name, page, query, created_by, created_at }: SavedView) {
  const here = useHere();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => tell("DELETE", tenantPath(here.tenant ?? "", `views/${encodeURIComponent(id)}`)),
    onSuccess: () => client.invalidateQueries(),
  });
  return (
    <tr>
      <th scope="row">
        <a
          className="more"
          href={here.to(readView(query), PAGES.some((each) => each.page === page) || page === "item" ? page : "costs")}
        >
          {name}
        </a>
      </th>
      <td>{titleOf(page)}</td>
      <td className="quiet">{created_by}</td>
      <td className="quiet num small">{instant(created_at)}</td>
      <td>
        <button type="button" className="more" disabled={remove.isPending} onClick={() => remove.mutate()}>
          Remove<span className="sr"> the view {name}</span>
        </button>
      </td>
    </tr>
  );
}

function Save() {
  const here = useHere();
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: (body: Record<string, string>) => tell("POST", tenantPath(here.tenant ?? "", "views"), body),
    onSuccess: () => client.invalidateQueries(),
  });
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = (name: string) => String(data.get(name) ?? "").trim();
    remember("author", text("author"));
    const query = writeView({ ...here.view, extra: {} }).replace(/^\?/, "");
    save.mutate({ name: text("name"), page: text("page"), query, created_by: text("author") });
  };
  return (
    <Card title="Save this view" note="period, comparison and filters">
      <p className="tools">
        <span className="note">{named(here.view)}</span>
        <Chips />
      </p>
      <form className="form" onSubmit={onSubmit}>
        <label>
          Name
          <input className="field" name="name" required maxLength={200} />
        </label>
        <label>
          Page
          <select className="field" name="page" defaultValue="costs">
            {PAGES.filter((each) => each.page !== "views").map((each) => (
              <option key={each.page} value={each.page}>
                {each.title}
              </option>
            ))}
          </select>
        </label>
        <AuthorField maxLength={200} />
        <button type="submit" className="button primary" disabled={save.isPending}>
          Save
        </button>
        <span role="status" className={save.isError ? "bad" : "note"}>
          {save.isError ? asProblem(save.error).detail : save.isSuccess ? "Saved." : ""}
        </span>
      </form>
    </Card>
  );
}
