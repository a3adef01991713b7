import { Fragment } from "react";

/** A long number, which may go on in the next line behind each of its commas. */
export function Digits({ text }: { text: string }) {
  const [first, ...groups] = text.split(",");
  return (
    <span className="num">
      {first}
      {groups.map((group, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the groups of a number have nothing but their places
        <Fragment key={n}>
          ,<wbr />
          {group}
        </Fragment>
      ))}
    </span>
  );
}
