import type { ReactNode } from "preact/compat";
import { Scroller } from "./scroller";

/** The head of a column; figures stand at its end. */
export type Head = string | { name: string; end: true; note?: string | undefined };

interface Props {
  label: string;
  className?: string;
  heads: readonly (Head | false)[];
  foot?: ReactNode;
  children: ReactNode;
}

/** A table in a region that scrolls by itself; its rows are the children, heads that are false are left out. */
export function Table({ label, className = "", heads, foot, children }: Props) {
  return (
    <Scroller className={className} label={label}>
      <table className="table">
        <thead>
          <tr>
            {heads.map((head) =>
              !head ? null : typeof head === "string" ? (
                <th key={head} scope="col">
                  {head}
                </th>
              ) : (
                <th key={head.name} scope="col" className="end">
                  {head.name}
                  {head.note && <small>{head.note}</small>}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
        {foot && <tfoot>{foot}</tfoot>}
      </table>
    </Scroller>
  );
}
