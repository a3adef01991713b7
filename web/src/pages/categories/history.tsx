import { useState } from "preact/compat";
import { documentOf, useDryRun, useHistory, useVersion } from "../../api/categories";
import type { Versioned } from "../../api/client";
import type { Category } from "../../api/shapes";
import { useHere } from "../../app/router";
import { instant } from "../../format/days";
import { grouped } from "../../format/formats";
import { Card } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { NotUndone } from "../../ui/saved";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
import { EffectOf } from "./effect";
import { restatingBy, undoneWords, useUndo } from "./saved";
import { lastOf, type Saved } from "./undo";

/** Who changed the category, when, and why; the last change can be undone. */
export function History({ found, canEdit }: { found: Versioned<Category>; canEdit: boolean }) {
  const { tenant } = useHere();
  const { key } = found.body;
  const query = useHistory(tenant ?? "", key);
  const [undoing, setUndoing] = useState<{ saved: Saved; before: Category } | null>(null);
  return (
    <Card title={say("History")} note={query.known && say("{n} {n|version|versions}", { n: query.known.data.total })}>
      <Answered answer={query} skeleton={<Bone height={10} />}>
        {({ items, total }) => {
          const last = canEdit ? lastOf(found, items) : null;
          return (
            <>
              <Table
                className="tall"
                label={say("Table of versions")}
                heads={[
                  ...[say("Version"), say("When"), say("Who"), say("Why")],
                  { name: say("Rules"), end: true },
                  { name: say("Values"), end: true },
                  last !== null && say("Change [to edit]"),
                ]}
              >
                {items.map((each) => (
                  <tr key={each.version}>
                    <th scope="row" className="num">
                      {each.version}
                      {each.removed && say(" (removed)")}
                    </th>
                    <td className="num">{instant(each.at)}</td>
                    <td>{each.who}</td>
                    <td>{each.reason ?? <span className="quiet">–</span>}</td>
                    <td className="end num">{grouped(each.rules)}</td>
                    <td className="end num">{grouped(each.values)}</td>
                    {last && (
                      <td>
                        {each.version === last.version && (
                          <button
                            type="button"
                            className="more"
                            onClick={() => setUndoing({ saved: last, before: found.body })}
                          >
                            {say("Undo")}
                            <span className="sr"> {say("version {version}", { version: `${each.version}` })}</span>
                          </button>
                        )}
                      </td>
                    )}
                  </tr>
                ))}
              </Table>
              {total > items.length && <p className="note">{say("The last {n} are shown.", { n: items.length })}</p>}
            </>
          );
        }}
      </Answered>
      {undoing && (
        <Drawer
          title={say("Undo version {version}", { version: `${undoing.saved.version}` })}
          onClose={() => setUndoing(null)}
        >
          <UndoForm {...undoing} />
        </Drawer>
      )}
    </Card>
  );
}

/** What undoing a version would move, and the button that does it. `before` is that version. */
function UndoForm({ saved, before }: { saved: Saved; before: Category }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const replaced = useVersion(name, before.key, saved.replaced);
  const document = replaced.known && documentOf(replaced.known.data);
  const trial = useDryRun(name, before.key, document, here.view);
  const undo = useUndo(before.key, saved);
  const undone = undoneWords(undo, saved);
  if (undone)
    return (
      <p className="banner good" role="status">
        {undone}
      </p>
    );
  return (
    <div className="stack">
      <Answered answer={replaced} skeleton={<Bone height={8} />}>
        {(found) => (
          <Answered answer={trial} skeleton={<Bone height={8} />}>
            {(effect) => (
              <>
                <EffectOf effect={effect} base={documentOf(before)} document={documentOf(found)} />
                <p className="tools">
                  <button
                    type="button"
                    className="button primary"
                    disabled={undo.isPending}
                    onClick={() => undo.mutate({})}
                  >
                    {say("Put version {version} back", { version: `${saved.replaced}` })}
                  </button>
                </p>
              </>
            )}
          </Answered>
        )}
      </Answered>
      <NotUndone undo={undo} onRestate={restatingBy(undo)} />
    </div>
  );
}
