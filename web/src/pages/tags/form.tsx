import { type FormEvent, useId, useState } from "preact/compat";
import { present } from "../../api/answer";
import { useTagValues } from "../../api/questions";
import type { Tag } from "../../api/shapes";
import { remember } from "../../app/memory";
import { useHere } from "../../app/router";
import { AuthorField } from "../../ui/author";
import { texts } from "../../ui/form";
import { say } from "../../words/say";
import { type Change, MODES, type Mode, Preview } from "./change";

interface Entity {
  type: Tag["entity_type"];
  id: string;
  name: string | null;
}

interface Props {
  entities: readonly Entity[];
  /** Whether all of them are meant, unless somebody takes some away. */
  all?: boolean;
  tagKey?: string;
}

/** Tag several things at once; what changes is shown before it is written. */
export function TagForm({ entities, all = false, tagKey = "team" }: Props) {
  const [change, setChange] = useState<Change | null>(null);
  const [mode, setMode] = useState<Mode>("add");
  const [key, setKey] = useState(tagKey);
  const [list, hint] = [useId(), useId()];
  const values = present(useTagValues(useHere().tenant ?? "", key.trim()))?.values;

  const preview = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const chosen = new FormData(event.currentTarget).getAll("entity").map(String);
    const { key, value, from, author } = texts(event.currentTarget, "key", "value", "from", "author");
    remember("author", author);
    const dates = from ? { valid_from: from } : {};
    const items = entities
      .filter((each) => chosen.includes(each.id))
      .map((each) => ({ entity_type: each.type, entity_id: each.id, tag_key: key, tag_value: value, ...dates }));
    setChange({ mode, items, author });
  };

  return (
    <form className="stack" onSubmit={preview} onInput={() => setChange(null)}>
      <fieldset>
        <legend className="sr">{say("What to tag")}</legend>
        {entities.map((each) => (
          <label key={each.id} className="check">
            <input type="checkbox" name="entity" value={each.id} defaultChecked={all} /> {each.name ?? each.id}
            {each.name && <span className="quiet small"> {each.id}</span>}
          </label>
        ))}
      </fieldset>
      <div className="form">
        <ModeField mode={mode} onMode={setMode} />
        <label>
          {say("Key")}
          <input
            className="field"
            name="key"
            required
            maxLength={63}
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        {mode !== "remove" && (
          <label>
            {say("Value")}
            <input className="field" name="value" required maxLength={255} list={list} autoComplete="off" />
          </label>
        )}
        {mode === "change" && (
          <label>
            {say("From [a day]")}
            <input className="field" name="from" type="date" aria-describedby={hint} />
          </label>
        )}
        <AuthorField maxLength={255} />
        <button type="submit" className="button">
          {say("Preview")}
        </button>
      </div>
      <datalist id={list}>
        {values?.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      {mode === "change" && (
        <p className="note" id={hint}>
          {say(
            "With a day in From, what is there ends on that day (UTC) and stays as it is before it. Without one, the value changes for all days.",
          )}
        </p>
      )}
      {change &&
        (change.items.length ? <Preview change={change} /> : <p className="note">{say("Choose at least one.")}</p>)}
    </form>
  );
}

export function ModeField({ mode, onMode }: { mode: Mode; onMode: (mode: Mode) => void }) {
  return (
    <label>
      {say("What to do")}
      <select className="field" value={mode} onChange={(event) => onMode(event.currentTarget.value as Mode)}>
        {Object.entries(MODES).map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
