import type { ReactNode } from "preact/compat";
import { exact, signed } from "../format/money";
import { pixels, type Units } from "../money/money";

export interface Moved {
  key: string;
  name: string;
  difference: Units;
  /** Where it leads, if anywhere. */
  href?: string;
}

const WIDTH = 96;

/** What changed most, as bars to both sides of nothing. */
export function Movers({ items, currency }: { items: readonly Moved[]; currency: string }) {
  const sizes = items.map((each) => pixels(each.difference));
  const [low, high] = [Math.min(0, ...sizes), Math.max(0, ...sizes)];
  const scale = (WIDTH - 2) / (high - low || 1);
  const zero = 1 - low * scale;
  return (
    <ol className="movers">
      {items.map((item, n) => {
        const size = (sizes[n] ?? 0) * scale;
        return (
          <li key={item.key}>
            <Row href={item.href}>
              <span className="name cut" title={item.name}>
                {item.name}
              </span>
              <svg viewBox={`0 0 ${WIDTH} 12`} aria-hidden="true">
                <line className="axis" x1={zero} x2={zero} y1={0} y2={12} />
                <rect
                  className={size > 0 ? "up" : "down"}
                  x={size > 0 ? zero : zero + size}
                  width={Math.max(1, Math.abs(size))}
                  y={1}
                  height={10}
                  rx={1.5}
                />
              </svg>
              <span className="amount num" title={exact(item.difference, currency)}>
                {signed(item.difference, currency)}
              </span>
            </Row>
          </li>
        );
      })}
    </ol>
  );
}

function Row({ href, children }: { href: string | undefined; children: ReactNode }) {
  if (href === undefined) return <span className="row">{children}</span>;
  return (
    <a className="row" href={href}>
      {children}
    </a>
  );
}
