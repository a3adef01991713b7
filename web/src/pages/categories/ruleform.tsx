import { type FormEvent, useEffect, useId, useRef, useState } from "preact/compat";
import { say } from "../../words/say";
import { EMPTY_FORM, formOf, HOWS, KINDS, type Part, type Rule, type RuleForm, ruleOf } from "./document";

interface Props {
  /** The rule to change; without one, a new rule. */
  rule?: Rule;
  values: readonly string[];
  onDone: (rule: Rule) => void;
  onCancel: () => void;
}

/** A simple rule as a form: what it looks at, what it assigns, on which days, and why. */
export function RuleFields({ rule, values, onDone, onCancel }: Props) {
  const [form, setForm] = useState<RuleForm>(() => (rule && formOf(rule)) || EMPTY_FORM);
  const [wrong, setWrong] = useState<string | null>(null);
  const list = useId();
  const box = useRef<HTMLFormElement>(null);
  useEffect(() => box.current?.querySelector("select")?.focus(), []);
  const set = (part: Partial<RuleForm>) => setForm({ ...form, ...part });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const dated = form.from && form.until && form.from > form.until;
    if (dated) setWrong(say("The last day is before the first one."));
    else onDone(ruleOf(form));
  };
  return (
    <form
      ref={box}
      className="stack well"
      onSubmit={submit}
      aria-label={rule ? say("Change the rule") : say("New rule")}
    >
      <div className="form">
        <Choice
          label={say("What it looks at")}
          value={form.kind}
          options={KINDS}
          onChoose={(kind) => set({ kind, how: howFor(kind, form.how) })}
        />
        {form.kind === "tag" && (
          <label>
            {say("Tag key")}
            <input
              className="field"
              required
              maxLength={63}
              value={form.tag}
              onChange={(event) => set({ tag: event.currentTarget.value })}
            />
          </label>
        )}
        <Choice
          label={say("How")}
          value={form.how}
          options={Object.fromEntries(Object.entries(HOWS).filter(([how]) => how !== "any" || form.kind === "tag"))}
          onChoose={(how) => set({ how })}
        />
        {form.how !== "any" && (
          <label>
            {say("Which, one a line")}
            <textarea
              className="field"
              required
              rows={2}
              spellcheck={false}
              value={form.texts}
              onChange={(event) => set({ texts: event.currentTarget.value })}
            />
          </label>
        )}
      </div>
      <div className="form">
        <Choice
          label={say("What it assigns")}
          value={form.gives}
          options={{ value: say("One value"), split: say("A split over values"), tag: say("What a tag says") }}
          onChoose={(gives) => set({ gives: gives as RuleForm["gives"] })}
        />
        {form.gives !== "split" && (
          <label>
            {form.gives === "tag" ? say("Key of the tag") : say("Value")}
            <input
              className="field"
              required
              maxLength={255}
              autoComplete="off"
              list={form.gives === "value" ? list : undefined}
              value={form.value}
              onChange={(event) => set({ value: event.currentTarget.value })}
            />
          </label>
        )}
      </div>
      {form.gives === "split" && <Parts parts={form.parts} list={list} onChange={(parts) => set({ parts })} />}
      <datalist id={list}>
        {values.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <div className="form">
        <label>
          {say("First day")}
          <input
            className="field"
            type="date"
            value={form.from}
            onChange={(event) => set({ from: event.currentTarget.value })}
          />
        </label>
        <label>
          {say("Last day")}
          <input
            className="field"
            type="date"
            value={form.until}
            onChange={(event) => set({ until: event.currentTarget.value })}
          />
        </label>
        <label>
          {say("Name of the rule")}
          <input
            className="field"
            maxLength={64}
            autoComplete="off"
            value={form.id}
            onChange={(event) => set({ id: event.currentTarget.value })}
          />
        </label>
        <label>
          {say("Reason")}
          <input
            className="field"
            maxLength={255}
            value={form.reason}
            onChange={(event) => set({ reason: event.currentTarget.value })}
          />
        </label>
      </div>
      <p className="note">{say("Days are days of costs, in UTC. Without them, the rule holds for ever.")}</p>
      {wrong && (
        <p role="alert" className="bad small">
          {wrong}
        </p>
      )}
      <p className="tools">
        <button type="submit" className="button primary">
          {rule ? say("Change the rule") : say("Add the rule")}
        </button>
        <button type="button" className="button plain" onClick={onCancel}>
          {say("Cancel")}
        </button>
      </p>
    </form>
  );
}

function howFor(kind: string, how: string): string {
  return how === "any" && kind !== "tag" ? "list" : how;
}

interface ChoiceProps {
  label: string;
  value: string;
  options: Readonly<Record<string, string>>;
  onChoose: (key: string) => void;
}

function Choice({ label, value, options, onChoose }: ChoiceProps) {
  return (
    <label>
      {label}
      <select className="field" value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {Object.entries(options).map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The parts of a split; the service says whether they sum to 100. */
function Parts({ parts, list, onChange }: { parts: readonly Part[]; list: string; onChange: (parts: Part[]) => void }) {
  const set = (place: number, part: Partial<Part>) =>
    onChange(parts.map((each, n) => (n === place ? { ...each, ...part } : each)));
  return (
    <fieldset className="parts">
      <legend className="small quiet">{say("Parts, which sum to 100%")}</legend>
      {parts.map((part, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a part has no other name than its place
        <div className="form" key={n}>
          <label>
            {say("Value {number}", { number: n + 1 })}
            <input
              className="field"
              required={n < 2}
              list={list}
              autoComplete="off"
              value={part.value}
              onChange={(event) => set(n, { value: event.currentTarget.value })}
            />
          </label>
          <label>
            {say("Percent {number}", { number: n + 1 })}
            <input
              className="field"
              required={n < 2 || part.value !== ""}
              inputMode="decimal"
              pattern="\s*\d+(\.\d+)?\s*"
              value={part.percent}
              onChange={(event) => set(n, { percent: event.currentTarget.value })}
            />
          </label>
        </div>
      ))}
      <button type="button" className="more" onClick={() => onChange([...parts, { value: "", percent: "" }])}>
        {say("Another part")}
      </button>
    </fieldset>
  );
}
