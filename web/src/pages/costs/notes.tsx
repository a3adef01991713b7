import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "preact/compat";
import { address } from "../../api/address";
import { askAgain, present } from "../../api/answer";
import { getVersion, ifStill, send } from "../../api/client";
import { useAccess } from "../../api/me";
import { asProblem } from "../../api/problems";
import type { Note } from "../../api/shapes";
import { remember } from "../../app/memory";
import { useHere } from "../../app/router";
import { range } from "../../format/days";
import { AuthorField } from "../../ui/author";
import { texts } from "../../ui/form";
import { Popover } from "../../ui/popover";
import { RemoveButton } from "../../ui/remove";
import type { Dates } from "../../url/period";
import { say } from "../../words/say";
import { useNotes } from "./marks";

const NOTE = "/notes/{note_id}";

/** The notes on some days, and a form for another one. */
export function NotesButton({ days }: { days: Dates }) {
  return (
    <Popover
      name={say("Notes")}
      icon="note"
      bare="square"
      label={<span className="sr">{say("Notes on these days")}</span>}
    >
      {() => <Notes days={days} />}
    </Popover>
  );
}

function Notes({ days }: { days: Dates }) {
  const { tenant } = useHere();
  const name = tenant ?? "";
  const client = useQueryClient();
  const notes = present(useNotes(name, days))?.items ?? null;
  const mayWrite = useAccess(name).may("tag");
  const [changed, setChanged] = useState<Note | null>(null);
  const save = useMutation({
    mutationFn: (body: Written) => saveNote(name, changed, body),
    onSuccess: () => {
      setChanged(null);
      return askAgain(client);
    },
  });
  return (
    <>
      <ul className="notes">
        {notes?.map((note) => (
          <li key={note.id}>
            <p>{note.text}</p>
            <p className="note">
              {range(note.start_date, note.end_date)} · {note.changed_by}
              {mayWrite && (
                <>
                  <button type="button" className="more" onClick={() => setChanged(note)}>
                    {say("Change [to edit]")}
                    <span className="sr"> {note.text}</span>
                  </button>
                  <RemoveButton
                    href={address<typeof NOTE, "delete">(name, NOTE, { at: { note_id: note.id } })}
                    what={note.text}
                    headers={{ "If-Match": "*" }}
                  />
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
      {notes?.length === 0 && <p className="note">{say("There are none on these days.")}</p>}
      {mayWrite && (
        <NoteForm
          key={changed?.id}
          days={days}
          changed={changed}
          isPending={save.isPending}
          onSave={(body, done) => save.mutate(body, { onSuccess: done })}
        />
      )}
      <p role="status" className="bad small">
        {save.isError && asProblem(save.error).detail}
      </p>
    </>
  );
}

/** What a note shall be, and who says so. */
type Written = Record<"start_date" | "end_date" | "text" | "created_by", string>;

interface FormProps {
  days: Dates;
  /** The note to change; null for a new one. */
  changed: Note | null;
  isPending: boolean;
  /** `done` is called once it is saved. */
  onSave: (note: Written, done: () => void) => void;
}

function NoteForm({ days, changed, isPending, onSave }: FormProps) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const { text, start, end, author } = texts(form, "text", "start", "end", "author");
    if (!changed) remember("author", author);
    onSave({ text, start_date: start, end_date: end || start, created_by: author }, () => form.reset());
  };
  return (
    <form onSubmit={submit}>
      <label>
        {say("Note")}
        <input className="field" name="text" required maxLength={500} autoComplete="off" defaultValue={changed?.text} />
      </label>
      <div>
        <label>
          {say("From [a day]")}
          <input className="field" name="start" type="date" required defaultValue={changed?.start_date ?? days.end} />
        </label>
        <label>
          {say("To [a day]")}
          <input className="field" name="end" type="date" defaultValue={changed?.end_date ?? days.end} />
        </label>
      </div>
      {!changed && <AuthorField maxLength={200} />}
      <button type="submit" className="button primary" disabled={isPending}>
        {changed ? say("Change the note") : say("Add a note")}
      </button>
    </form>
  );
}

/** Write a note, or what a note shall be from now on. */
async function saveNote(tenant: string, of: Note | null, { created_by, ...body }: Written) {
  if (!of) return send("post", tenant, "/notes", { body: { ...body, created_by } });
  const at = { note_id: of.id };
  return send("put", tenant, NOTE, { at, body, headers: await ifStill(of.version, getVersion(tenant, NOTE, { at })) });
}
