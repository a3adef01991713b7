import type { Tenant } from "../api/shapes";
import { useHere } from "../app/router";
import { say } from "../words/say";
import { Popover } from "./popover";

/** Choose the currency of sums, where the tenant has rates for others than that of its bill. */
export function CurrencyButton({ tenant }: { tenant: Tenant }) {
  const { view, to } = useHere();
  const others = tenant.currencies ?? [];
  if (others.length === 0 && view.currency === null) return null;
  const shown = view.currency ?? tenant.currency;
  return (
    <Popover name={say("Currency")} label={shown}>
      {(close) => (
        <ul>
          {[tenant.currency, ...others].map((each) => (
            <li key={each}>
              <a
                href={to({ ...view, currency: each === tenant.currency ? null : each })}
                aria-current={each === shown ? "true" : undefined}
                onClick={close}
              >
                {each}
                {each === tenant.currency && <span className="quiet">{say(" as billed")}</span>}
              </a>
            </li>
          ))}
        </ul>
      )}
    </Popover>
  );
}
