import { type FormEvent, useMemo, useState } from "react";
import { remember } from "../../app/memory";
import { count } from "../../format/days";
import { AuthorField } from "../../ui/author";
import { Card } from "../../ui/card";
import { FileField } from "../../ui/filefield";
import { texts } from "../../ui/form";
import { Icon } from "../../ui/icons";
import { Table } from "../../ui/table";
import { type Change, type Mode, Preview } from "./change";
import { type Mistake, readTags } from "./csv";
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
    <Card title="Many at once, from a CSV file" note="nothing is changed before you have seen the effect">
      <form className="stack" onSubmit={preview} onChange={() => setChange(null)}>
        <p className="note">
          The first line names the columns: <code>entity_type,entity_id,tag_key,tag_value</code>. A type is{" "}
          <code>identity</code> or <code>resource</code>.
        </p>
        <div className="form">
          <FileField onText={setText} />
          <ModeField mode={mode} onMode={setMode} />
          <AuthorField maxLength={255} />
          <button type="submit" className="button" disabled={!found || found.mistakes.length > 0 || tooLarge}>
            <Icon name="upload" />
            Preview
          </button>
        </div>
        <p role="status" className="note">
          {found && found.mistakes.length === 0 && `${count(found.items.length, "tag")} in the file.`}
          {tooLarge && <span className="bad"> They are too many for one request (8 MiB): split the file.</span>}
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
        {count(list.length, "line")} {list.length === 1 ? "is" : "are"} wrong; nothing of the file is used.
      </p>
      <Table className="tall" label="Mistakes in the file" heads={[{ name: "Line", end: true }, "What is wrong"]}>
        {list.slice(0, MOST).map((each) => (
          <tr key={`${each.line} ${each.what}`}>
            <td className="end num">{each.line}</td>
            <td>{each.what}</td>
          </tr>
        ))}
      </Table>
      {list.length > MOST && <p className="note">The first {MOST} are shown.</p>}
    </>
  );
}
