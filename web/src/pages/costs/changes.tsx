import { useChanges } from "../../api/questions";
import type { Breakdown, Changes } from "../../api/shapes";
import { useHere } from "../../app/router";
import { Movers } from "../../charts/movers";
import { range } from "../../format/days";
import { exact, signed } from "../../format/money";
import { amid, dimension, label } from "../../format/names";
import { read } from "../../money/money";
import { Amount } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { Answered, Bone } from "../../ui/states";
import { toggle } from "../../url/view";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { effectsOf } from "./effects";
import { filterValue } from "./facts";

interface Props {
  found: Breakdown;
  onClose: () => void;
}

/** Why costs changed: every difference as a sum of effects, and in a sentence. */
export function WhyChanged({ found, onClose }: Props) {
  const here = useHere();
  const query = useChanges(here.tenant ?? "", here.view, found.by);
  return (
    <Drawer title={say("Why did it change?")} onClose={onClose}>
      <Answered answer={query} skeleton={<Bone height={24} />}>
        {(answer) => (
          <>
            <Whole answer={answer} />
            <section>
              <h3>{say("By {dimension}, the largest changes first", { dimension: amid(dimension(found.by)) })}</h3>
              {answer.items.length === 0 && <p className="note">{say("There are no costs in either period.")}</p>}
              <ul className="reasons">
                {answer.items.map((item) => (
                  <Item
                    key={JSON.stringify(item.dimensions)}
                    item={item}
                    answer={answer}
                    by={found.by}
                    names={new Map([...found.items, ...found.movers].map((each) => [each.value, each.name]))}
                    onClose={onClose}
                  />
                ))}
              </ul>
              {answer.other && (
                <p className="note">
                  {say("and {n} {n|other|others}: {amount}", {
                    n: answer.other.count,
                    amount: signed(read(answer.other.delta), answer.currency),
                  })}
                </p>
              )}
            </section>
          </>
        )}
      </Answered>
    </Drawer>
  );
}

function Whole({ answer }: { answer: Changes }) {
  const { totals, compared_with: before, currency } = answer;
  return (
    <section>
      <p className="whole" title={exact(totals.delta, currency)}>
        {signed(read(totals.delta), currency)}
      </p>
      <p className="note">
        {say("{before} in {earlier} ({n} {n|day|days} with costs), {after} in {later} ({m} {m|day|days})", {
          before: <Amount amount={totals.before} currency={currency} />,
          earlier: range(before.start_date, before.end_date),
          n: before.days_with_costs,
          after: <Amount amount={totals.after} currency={currency} />,
          later: range(answer.start_date, answer.end_date),
          m: answer.days_with_costs,
        })}
      </p>
      <Movers items={effectsOf(totals.effects)} currency={currency} />
    </section>
  );
}

interface ItemProps {
  item: Changes["items"][number];
  answer: Changes;
  by: string;
  /** Names that the page knows already. */
  names: ReadonlyMap<string | null, string | null>;
  onClose: () => void;
}

function Item({ item, answer, by, names, onClose }: ItemProps) {
  const here = useHere();
  const value = item.dimensions[by] ?? null;
  const called = names.get(value) ?? (value === null ? null : answer.names[by]?.[value]);
  const { name } = label(by, value, called);
  return (
    <li>
      <h4>
        <a className="more" href={here.to(toggle(here.view, by, filterValue(by, value)))} onClick={onClose}>
          {name}
        </a>
      </h4>
      <p>{reworded(item.sentence)}</p>
      <details>
        <summary>
          {say("Effects")}
          <span className="sr">{say(" of {name}", { name })}</span>
        </summary>
        <Movers items={effectsOf(item.effects)} currency={answer.currency} />
      </details>
    </li>
  );
}
