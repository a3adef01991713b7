import { asProblem } from "../api/problems";

/** Why what was asked for was not done, read out when it appears; nothing otherwise. */
export function Refusal({ of }: { of: { isError: boolean; error: Error | null } }) {
  return (
    <p role="status" className={of.isError ? "bad small" : "sr"}>
      {of.isError && asProblem(of.error).detail}
    </p>
  );
}
