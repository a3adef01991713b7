import { present } from "../api/answer";
import { useMe, userOf } from "../api/me";
import { remembered } from "../app/memory";
import { say } from "../words/say";

/** Who makes a change: known to the service, or asked for once and then remembered. */
export function AuthorField({ maxLength }: { maxLength: number }) {
  const user = userOf(present(useMe()));
  if (user !== null) return <input type="hidden" name="author" value={user} />;
  return (
    <label>
      {say("Your name")}
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
