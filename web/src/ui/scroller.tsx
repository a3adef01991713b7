import type { CSSProperties, ReactNode, Ref } from "preact/compat";

interface Props {
  label: string;
  className?: string;
  style?: CSSProperties;
  ref?: Ref<HTMLElement>;
  children: ReactNode;
}

/** A region that scrolls by itself, and that keys can reach. */
export function Scroller({ label, className = "", style, ref, children }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without a focus, keys could not scroll it
    <section className={`scroller ${className}`} style={style} ref={ref ?? null} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
