import { remembered } from "../app/memory";

/** Who makes a change: asked for once, then remembered. */
export function AuthorField({ maxLength }: { maxLength: number }) {
  return (
    <label>
      Your name
      <input
        className="field"
        name="author"
        required
        maxLength={maxLength}
        defaultValue={remembered("author") ?? ""}
        autoComplete="name"
      />
    </label>
  );
}
