import { Exact } from "./card";
import { Fact } from "./fact";
import { Icon } from "./icons";

/** Amounts beside what the provider billed, and whether they are equal to the last digit. */
export function AgainstTheBill({
  isEqual,
  amounts,
  currency,
  children,
}: {
  isEqual: boolean;
  amounts: [name: string, amount: string | bigint][];
  currency: string;
  children?: React.ReactNode;
}) {
  return (
    <section className="tieout" aria-label="Against the provider’s bill">
      <p className={`state ${isEqual ? "good" : "bad"}`}>
        <Icon name={isEqual ? "check" : "warning"} />
        {isEqual ? "Equal to the provider’s bill, to the last digit" : "Not equal to the provider’s bill"}
      </p>
      <dl className="facts-list">
        {amounts.map(([name, amount]) => (
          <Fact key={name} name={name}>
            <Exact amount={amount} currency={currency} />
          </Fact>
        ))}
      </dl>
      {children}
    </section>
  );
}
