import { useHere } from "../app/router";
import { extra, type Own } from "../url/view";

interface Props {
  name: string;
  /** What can be chosen: values of the address, and what they are called. */
  values: readonly (readonly [string, string])[];
  chosen: string;
  /** What only this page knows, in its address. */
  field: Own;
}

/** One of a few ways to see a page; the address keeps it. */
export function Choice({ name, values, chosen, field }: Props) {
  const here = useHere();
  return (
    <nav className="segments tabs" aria-label={name}>
      {values.map(([value, title]) => (
        <a
          key={value}
          href={here.to(extra(here.view, field, value))}
          data-replace=""
          aria-current={value === chosen ? "true" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}
