import { type FormEvent, useState } from "preact/compat";
import { useAssigned } from "../../api/categories";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { grouped } from "../../format/formats";
import { Card } from "../../ui/card";
import { texts } from "../../ui/form";
import { Answered, Bone } from "../../ui/states";
import { say } from "../../words/say";
import { type CategoryDocument, nameIn } from "./document";

const FIELDS = ["identity_id", "resource_id", "topic", "product_type", "date"] as const;
type Subject = Partial<Record<(typeof FIELDS)[number], string>>;

/** What one identity, resource or topic is assigned on a day, and why. */
export function Tester({ categoryKey, document }: { categoryKey: string; document: CategoryDocument }) {
  const [subject, setSubject] = useState<Subject | null>(null);
  const ask = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const found = texts(event.currentTarget, ...FIELDS);
    setSubject(Object.fromEntries(FIELDS.filter((each) => found[each]).map((each) => [each, found[each]])));
  };
  return (
    <Card title={say("Try it")} note={say("what is assigned, and why")}>
      <form className="form" onSubmit={ask}>
        <label>
          {say("Identity")}
          <input className="field" name="identity_id" autoComplete="off" />
        </label>
        <label>
          {say("Resource")}
          <input className="field" name="resource_id" autoComplete="off" />
        </label>
        <label>
          {say("Topic")}
          <input className="field" name="topic" autoComplete="off" />
        </label>
        <label>
          {say("Product")}
          <input className="field" name="product_type" autoComplete="off" />
        </label>
        <label>
          {say("Day (without one: today)")}
          <input className="field" name="date" type="date" />
        </label>
        <button type="submit" className="button">
          {say("Try")}
        </button>
      </form>
      {subject && <Assigned categoryKey={categoryKey} subject={subject} document={document} />}
    </Card>
  );
}

interface Props {
  categoryKey: string;
  subject: Subject;
  document: CategoryDocument;
}

function Assigned({ categoryKey, subject, document }: Props) {
  const { tenant } = useHere();
  const query = useAssigned(tenant ?? "", categoryKey, subject);
  const name = (value: string) => nameIn(document, value);
  return (
    <Answered answer={query} skeleton={<Bone height={8} />}>
      {(found) => (
        <div role="status">
          <dl className="facts-list">
            <div>
              <dt>{say("Value on {day}", { day: full(found.date) })}</dt>
              <dd>
                {found.value === null
                  ? found.parts.map((each) => `${name(each.value)} × ${grouped(each.category_share)}`).join(", ")
                  : name(found.value)}
              </dd>
            </div>
            {found.path.length > 1 && (
              <div>
                <dt>{say("Belongs to")}</dt>
                <dd>{found.path.slice(1).map(name).join(" › ")}</dd>
              </div>
            )}
            <div>
              <dt>{say("Rule")}</dt>
              <dd>
                {found.rule ? `${found.rule.index + 1}, ${found.rule.id}` : say("none matches; it is the default")}
              </dd>
            </div>
            {found.reason && (
              <div>
                <dt>{say("Reason")}</dt>
                <dd>{found.reason}</dd>
              </div>
            )}
            <div>
              <dt>{say("Later rules that would match, too")}</dt>
              <dd>{found.lost.map((each) => `${each.index + 1}, ${each.id}`).join("; ") || say("none [rules]")}</dd>
            </div>
          </dl>
        </div>
      )}
    </Answered>
  );
}
