import { type FormEvent, useState } from "preact/compat";
import { go, useHere } from "../../app/router";
import { Card } from "../../ui/card";
import { fromField, toField } from "../../url/moment";
import { extra } from "../../url/view";
import { say } from "../../words/say";

/** Two fields for date and time in UTC; the second one may stay empty, which is now. */
export function Choose({ from, to }: { from: string | null; to: string | null }) {
  const here = useHere();
  const [wrong, setWrong] = useState("");
  const compare = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const sent = new FormData(event.currentTarget);
    const first = chosen(String(sent.get("from")), from);
    const later = String(sent.get("to"));
    const second = later ? chosen(later, to) : null;
    if (!first || (later && !second)) setWrong(say("Enter a date and a time, such as 2026-11-15 12:00."));
    else if (second && first > second) setWrong(say("The first moment should not be after the second one."));
    else go(here.to(extra(extra(here.view, "from", first), "to", second)));
  };
  return (
    <Card
      title={say("Two moments")}
      note={say("in UTC; what was served then, and what is served now or at another moment")}
    >
      <form className="tools" onSubmit={compare} noValidate>
        <label>
          {say("Then [at that moment]")}{" "}
          <input className="field" type="datetime-local" name="from" step="1" defaultValue={toField(from)} required />
        </label>
        <label>
          {say("Later, or empty for now")}{" "}
          <input className="field" type="datetime-local" name="to" step="1" defaultValue={toField(to)} />
        </label>
        <button type="submit" className="button">
          {say("Compare")}
        </button>
        <span role="alert" className="bad small">
          {wrong}
        </span>
      </form>
    </Card>
  );
}

/** What is in a field; a moment that was not touched keeps the part of its second. */
function chosen(text: string, before: string | null): string | null {
  return before && text === toField(before) ? before : fromField(text);
}
