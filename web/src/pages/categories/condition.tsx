import { useEffect, useRef, useState } from "preact/compat";
import { present, useAnswer } from "../../api/answer";
import { entityOf } from "../../api/entities";
import { useHere } from "../../app/router";
import { label } from "../../format/names";
import { type Match, matchWords } from "./document";

/** The columns of ids that rules look at. */
const COLUMNS: Readonly<Record<string, string>> = {
  identity: "identity_id",
  resource: "resource_id",
  cluster: "cluster_id",
  environment: "environment_id",
};

/** What a rule looks at, in words. Its ids get their names once it is seen: of thousands of rules, few are. */
export function Condition({ match }: { match: Match }) {
  const at = useRef<HTMLSpanElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!at.current || isSeen) return;
    const observer = new IntersectionObserver((all) => setSeen(all.some((each) => each.isIntersecting)));
    observer.observe(at.current);
    return () => observer.disconnect();
  }, [isSeen]);
  return <span ref={at}>{isSeen ? matchWords(match, named) : matchWords(match)}</span>;
}

function named(kind: string, id: string) {
  const by = COLUMNS[kind];
  return by === undefined ? id : <Named by={by} id={id} />;
}

/** The id alone, until its name is known. */
function Named({ by, id: value }: { by: string; id: string }) {
  const { tenant } = useHere();
  const entity = present(useAnswer(entityOf(tenant ?? "", { key: by, value })));
  const { name, id } = label(by, value, entity?.display_name);
  return (
    <>
      {name}
      {id && <span className="quiet small"> {id}</span>}
    </>
  );
}
