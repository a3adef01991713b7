import { type FormEvent, useMemo, useState } from "preact/compat";
import { remember } from "../../app/memory";
import { AuthorField } from "../../ui/author";
import { Card } from "../../ui/card";
import { FileField } from "../../ui/filefield";
import { texts } from "../../ui/form";
import { Icon } from "../../ui/icons";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
import { type Change, type Mode, Preview } from "./change";
import { COLUMNS, type Mistake, readTags } from "./csv";
import { ModeField } from "./form";

/** The service takes no larger request. */
const MOST_BYTES = 8 * 1024 * 1024;

/** Tags from a CSV file, which is read here; what would change is shown before anything is. */
export function Upload() {
  const [mode, setMode] = useState<Mode>("add");
  const [text, setText] = useState<string | null>(null);
  const [change, setChange] = useState<Change | null>(null);
  const found = useMemo(() => (text === null ? null : readTags(text, { values: mode !== "remove" })), [text, mode]);
  const tooLarge = found !== null && JSON.stringify(found.items).length > MOST_BYTES * 0.95;

  const preview = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { author } = texts(event.currentTarget, "author");
    remember("author", author);
    if (found) setChange({ mode, items: found.items, author });
  };
  return (
    <Card title={say("Many at once, from a CSV file")} note={say("nothing is changed before you have seen the effect")}>
      <form className="stack" onSubmit={preview} onInput={() => setChange(null)}>
        <p className="note">
          {say("The first line names the columns: {columns}. A type is {identity} or {resource}.", {
            columns: <code>{COLUMNS.join()}</code>,
            identity: <code>{"identity"}</code>,
            resource: <code>{"resource"}</code>,
          })}
        </p>
        <div className="form">
          <FileField onText={setText} />
          <ModeField mode={mode} onMode={setMode} />
          <AuthorField maxLength={255} />
          <button type="submit" className="button" disabled={!found || found.mistakes.length > 0 || tooLarge}>
            <Icon name="upload" />
            {say("Preview")}
          </button>
        </div>
        <p role="status" className="note">
          {found && found.mistakes.length === 0 && say("{n} {n|tag|tags} in the file.", { n: found.items.length })}
          {tooLarge && (
            <span className="bad">{say(" They are too many for one request (8 MiB): split the file.")}</span>
          )}
        </p>
        {found && found.mistakes.length > 0 && <Mistakes list={found.mistakes} />}
        {change && <Preview change={change} />}
      </form>
    </Card>
  );
}

const MOST = 100;

function Mistakes({ list }: { list: readonly Mistake[] }) {
  return (
    <>
      <p role="alert" className="bad">
        {say("{n} {n|line is|lines are} wrong; nothing of the file is used.", { n: list.length })}
      </p>
      <Table
        className="tall"
        label={say("Mistakes in the file")}
        heads={[{ name: say("Line [of a file]"), end: true }, say("What is wrong")]}
      >
        {list.slice(0, MOST).map((each) => (
          <tr key={`${each.line} ${each.what}`}>
            <td className="end num">{each.line}</td>
            <td>{each.what}</td>
          </tr>
        ))}
      </Table>
      {list.length > MOST && <p className="note">{say("The first {n} are shown.", { n: MOST })}</p>}
    </>
  );
}
