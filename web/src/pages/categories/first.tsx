import { present } from "../../api/answer";
import { useTenant } from "../../api/questions";
import { useHere } from "../../app/router";
import { Empty } from "../../ui/states";
import { say } from "../../words/say";
import type { CategoryDocument } from "./document";

interface Props {
  canEdit: boolean;
  onStart: (key: string, document: CategoryDocument) => void;
}

/** What a cost category is, and a first one from what there is. */
export function First({ canEdit, onStart }: Props) {
  const { tenant } = useHere();
  const tags = present(useTenant(tenant ?? ""))?.tag_keys;
  return (
    <Empty title={say("There is no cost category yet")}>
      <p>
        {say(
          "A cost category says who really pays: its rules, the first that matches, assign each cost of each day to a cost center, a team or whatever finance counts by.",
        )}
      </p>
      <p>{say("Rules have dates and can split a cost, and what no rule matches stays visible as not assigned.")}</p>
      {canEdit && (
        <p className="tools">
          {tags?.slice(0, 3).map(({ key }) => (
            <button
              key={key}
              type="button"
              className="button primary"
              onClick={() => onStart(keyOf(key), { rules: [{ match: { tag: { key } }, assign: { from_tag: key } }] })}
            >
              {say("Begin with the tag {key}", { key })}
            </button>
          ))}
          <button type="button" className="button" onClick={() => onStart("cost_center", { rules: [] })}>
            {say("Begin without rules")}
          </button>
        </p>
      )}
    </Empty>
  );
}

/** A key for a category, made of that of a tag. */
export function keyOf(tag: string): string {
  const plain = tag.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^[^A-Za-z]+/, "");
  return plain.slice(0, 64) || "cost_center";
}
