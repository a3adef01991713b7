import { Fragment } from "preact/compat";
import { signs } from "../format/formats";

/** A long number, which may go on in the next line behind each of its thousands. */
export function Digits({ text }: { text: string }) {
  const { thousands } = signs();
  const [first, ...groups] = text.split(thousands);
  return (
    <span className="num">
      {first}
      {groups.map((group, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the groups of a number have nothing but their places
        <Fragment key={n}>
          {thousands}
          <wbr />
          {group}
        </Fragment>
      ))}
    </span>
  );
}
