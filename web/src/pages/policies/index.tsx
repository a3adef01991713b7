import { flushSync, useId, useRef, useState } from "preact/compat";
import { useAccess } from "../../api/me";
import { useCosts, useOf } from "../../api/questions";
import type { Costs, Policy } from "../../api/shapes";
import { useHere } from "../../app/router";
import { range } from "../../format/days";
import { Amount, Card } from "../../ui/card";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { Toolbar } from "../../ui/toolbar";
import { say } from "../../words/say";
import { Versions } from "./apply";
import { completed, completions, wordsOf } from "./completion";
import { ownOf, versionOf, withPolicy } from "./draft";
import { Portions } from "./portions";
import { Shadows } from "./shadows";
import { Tried, useTrial } from "./tried";

const PRODUCT = "product_type";
/** So many products have amounts here: no tenant has as many. */
const MOST_PRODUCTS = 50;

const SOURCES: Record<Policy["source"], string> = {
  shipped: say("as shipped"),
  configured: say("configured"),
  recorded: say("on other days"),
  unknown: say("not known"),
};

/** How costs are divided, with what each policy divided, and what others would make of the same days. */
export function PoliciesPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const policies = useOf(name, "/policies", { query: { page_size: 1000 } });
  const costs = useCosts(name, { ...here.view, filters: [] }, [PRODUCT], { top: MOST_PRODUCTS });
  return (
    <>
      <Toolbar compare={false} filters={false} />
      <Answered answer={policies} skeleton={<Bone height={30} />}>
        {({ items }) => (
          <Answered answer={costs} skeleton={<Bone height={30} />}>
            {(found) => (
              <InForce tenant={name} policies={items.filter((each) => each.source !== "recorded")} costs={found} />
            )}
          </Answered>
        )}
      </Answered>
    </>
  );
}

interface Props {
  tenant: string;
  policies: readonly Policy[];
  costs: Costs;
}

/** The policies that are in force and, for who may try others, what these would be. */
function InForce({ tenant, policies, costs }: Props) {
  const { may } = useAccess(tenant);
  const [draft, setDraft] = useState(() => ownOf(policies));
  if (!may("run"))
    return (
      <>
        <Listed policies={policies} costs={costs} />
        <Versions tenant={tenant} />
        <Shadows tenant={tenant} />
      </>
    );
  const edit = (policy: Policy) => setDraft(withPolicy(draft, policy));
  return (
    <>
      <Listed policies={policies} costs={costs} edit={edit} />
      <Versions tenant={tenant} />
      <Shadows tenant={tenant} />
      <Trial
        tenant={tenant}
        start={costs.start_date}
        end={costs.end_date}
        draft={draft}
        setDraft={setDraft}
        words={wordsOf(policies)}
      />
    </>
  );
}

interface ListedProps extends Omit<Props, "tenant"> {
  edit?: (policy: Policy) => void;
}

function Listed({ policies, costs, edit }: ListedProps) {
  const products = costs.breakdowns.find((each) => each.by === PRODUCT);
  const amounts = new Map(products?.items.map((each) => [each.value, each.amount]));
  return (
    <Card
      title={say("How costs are divided")}
      note={say("with what each divided, {range}", { range: range(costs.start_date, costs.end_date) })}
    >
      <Table
        className="tall"
        label={say("Table of policies")}
        heads={[
          say("Product"),
          say("Portions"),
          say("From [in force]"),
          { name: say("Amount"), end: true },
          ...(edit ? [say("Change [an action]")] : []),
        ]}
      >
        {policies.map((each) => (
          <tr key={`${each.product_type} ${each.hash}`}>
            <th scope="row">{each.product_type}</th>
            <td className="portions-of">
              <Portions of={each.portions} />
            </td>
            <td className="quiet">{each.effective_from ?? SOURCES[each.source]}</td>
            <td className="end">
              <Divided amount={amounts.get(each.product_type)} currency={costs.currency} />
            </td>
            {edit && (
              <td>
                <button type="button" className="more" onClick={() => edit(each)}>
                  {say("Edit")}
                  <span className="sr">{say(" the policy of {product}", { product: each.product_type })}</span>
                </button>
              </td>
            )}
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function Divided({ amount, currency }: { amount: string | undefined; currency: string }) {
  return amount === undefined ? <span className="quiet">–</span> : <Amount amount={amount} currency={currency} />;
}

interface TrialProps {
  tenant: string;
  start: string;
  end: string;
  draft: string;
  setDraft: (draft: string) => void;
  /** What the text can have. */
  words: readonly string[];
}

/** Other policies as text, tried on the days of the page. */
function Trial({ tenant, start, end, draft, setDraft, words }: TrialProps) {
  const id = useId();
  const text = useRef<HTMLTextAreaElement>(null);
  const [caret, setCaret] = useState(0);
  const follow = (event: { currentTarget: HTMLTextAreaElement }) => setCaret(event.currentTarget.selectionStart);
  const complete = (word: string) => {
    const next = completed(draft, caret, word);
    flushSync(() => setDraft(next.text));
    text.current?.focus();
    text.current?.setSelectionRange(next.caret, next.caret);
    setCaret(next.caret);
  };
  const { asked, last, mistakes } = useTrial(tenant, start, end);
  return (
    <>
      <Card title={say("Try others")} note={say("nothing is stored or changed")}>
        <label className="document">
          {say("What allocation_policies would be, in YAML")}
          <textarea
            className="field"
            rows={Math.min(24, draft.split("\n").length + 3)}
            spellcheck={false}
            value={draft}
            aria-invalid={asked.isError}
            aria-describedby={id}
            ref={text}
            onChange={(event) => {
              setDraft(event.currentTarget.value);
              follow(event);
            }}
            onKeyUp={follow}
            onPointerUp={follow}
          />
        </label>
        <p className="tools">
          {completions(draft, caret, words).map((word) => (
            <button key={word} type="button" className="more" onClick={() => complete(word)}>
              <span className="sr">{say("Complete to ")}</span>
              <code>{word}</code>
            </button>
          ))}
        </p>
        <ul id={id} role={mistakes ? "alert" : undefined} className="bad">
          {mistakes?.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
        <p className="tools">
          <button
            type="button"
            className="button primary"
            disabled={asked.isPending}
            onClick={() => asked.mutate({ policies: draft })}
          >
            {say("Try it, {range}", { range: range(start, end) })}
          </button>
          <a
            className="more"
            download={`${tenant}-policies.yaml`}
            href={`data:application/yaml;charset=utf-8,${encodeURIComponent(versionOf(draft, last))}`}
          >
            {say("Download it as a version from next month")}
          </a>
        </p>
      </Card>
      {asked.data && <Tried tenant={tenant} id={asked.data.id} />}
    </>
  );
}
