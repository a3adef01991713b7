import { present } from "../../api/answer";
import { useAccess } from "../../api/me";
import { useCosts, useTenant } from "../../api/questions";
import type { Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { RankedList } from "../../charts/ranked";
import { percent } from "../../format/money";
import { refused } from "../../format/rights";
import { read } from "../../money/money";
import { Card } from "../../ui/card";
import { Answered, Bone, Empty } from "../../ui/states";
import { Toolbar } from "../../ui/toolbar";
import { extra } from "../../url/view";
import { say } from "../../words/say";
import { comparison, ranked } from "../costs/facts";
import { Entities } from "./entities";
import { Upload } from "./upload";

/** Who owns what: the keys, how much of the cost has them, their values, and the things that carry them. */
export function TagsPage() {
  const here = useHere();
  const tenant = present(useTenant(here.tenant ?? ""));
  const keys = tenant?.tag_keys;
  const { isKnown, may } = useAccess(here.tenant ?? "");
  const canTag = may("tag") && (tenant?.features.can_tag ?? false);
  const key = here.view.extra.key ?? keys?.[0]?.key ?? null;
  return (
    <>
      <Toolbar />
      {keys?.length === 0 && (
        <Empty title={say("There are no tags yet")}>
          <p>
            {say(
              "Tag an identity or a resource with its team, and its cost is the team’s. The Unowned page is a good place to begin.",
            )}
          </p>
        </Empty>
      )}
      {keys && keys.length > 0 && (
        <div className="split">
          <div className="main-part">
            <Keys keys={keys} chosen={key} />
            {key && <Values tagKey={key} />}
          </div>
          <Entities tagKey={key} canTag={canTag} />
        </div>
      )}
      {canTag && <Upload />}
      {isKnown && !may("tag") && <p className="note">{refused("tag")}</p>}
    </>
  );
}

function Keys({ keys, chosen }: { keys: Tenant["tag_keys"]; chosen: string | null }) {
  const here = useHere();
  return (
    <Card title={say("Keys")} note={say("and the part of the cost that has them")}>
      <ul className="ranked">
        {keys.map(({ key, coverage }) => {
          const part = coverage === null ? null : Number(coverage);
          return (
            <li key={key}>
              <a
                className={`row ${key === chosen ? "picked" : ""}`}
                href={here.to(extra(here.view, "key", key))}
                data-replace=""
                aria-current={key === chosen ? "true" : undefined}
              >
                <span className="name">{key}</span>
                <span className="amount num">{percent(part)}</span>
                <span className="track" aria-hidden="true">
                  <i className="k-bar" style={{ width: `${(part ?? 0) * 100}%` }} />
                </span>
              </a>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function Values({ tagKey }: { tagKey: string }) {
  const here = useHere();
  const by = `tag:${tagKey}`;
  const query = useCosts(here.tenant ?? "", here.view, [by], { top: 50 });
  const listing = {
    ...here,
    to: (view: typeof here.view) => here.to(view, "item"),
    colour: (_: string | null, index: number) => (index < 0 ? "k-others" : "k-bar"),
  };
  return (
    <Card title={say("Values")} note={tagKey}>
      <Answered answer={query} skeleton={<Bone height={16} />}>
        {(costs) => {
          const found = costs.breakdowns[0];
          if (!found || costs.total.rows === 0) return <p className="note">{say("No costs in this view.")}</p>;
          return (
            <RankedList
              items={ranked(found, 50, { ...listing, view: here.view })}
              whole={read(costs.total.amount)}
              currency={costs.currency}
              comparable={comparison(costs).comparable}
            />
          );
        }}
      </Answered>
    </Card>
  );
}
