import { address } from "../api/address";
import { sumsOf, type Unit } from "../api/questions";
import { apiQuery, type View } from "../url/view";
import { say } from "../words/say";
import { Icon } from "./icons";

/** A file that the API makes: a plain address, so that a proxy, `curl` and a colleague can have it, too. */
export interface File {
  href: string;
  name: string;
  /** What it holds, where that is not what the page shows. */
  what?: string;
}

interface Props {
  file: File;
  className?: string;
  onClick?: () => void;
}

export function CsvLink({ file, className, onClick }: Props) {
  return (
    <a className={className} href={file.href} download={file.name} onClick={onClick}>
      <Icon name="download" />
      <span className={className && "narrow-sr"}>
        {file.what ? say("CSV of {what}", { what: file.what }) : say("CSV")}
      </span>
    </a>
  );
}

/** Where the link to a file will be, as long as it is not known who may have it: what is beside it does not move. */
export function CsvPlace() {
  return (
    <span className="button place" aria-hidden="true">
      <Icon name="download" />
      <span className="narrow-sr">{say("CSV")}</span>
    </span>
  );
}

/** Lets the browser keep a file that no link leads to. */
export function download({ href, name }: File): void {
  Object.assign(document.createElement("a"), { href, download: name }).click();
}

/** The rows of a view; `what` they are stands in the name of the file. */
export function rowsFile(tenant: string, view: View, what: string): File {
  return {
    href: address(tenant, "/chargebacks.csv", { query: apiQuery(view, { compare: false }), filters: view.filters }),
    name: `${tenant}-${what}.csv`,
  };
}

/** The costs of topics: a row for each topic, product and day. Topics have no filters of their own in an address. */
export function topicsFile(tenant: string, view: View): File {
  return {
    href: address(tenant, "/topic-attributions.csv", { query: apiQuery(view, { compare: false }) }),
    name: `${tenant}-topics.csv`,
  };
}

/** The lines of the bill, whatever the filters. */
export function billingFile(tenant: string, view: View): File {
  return {
    href: address(tenant, "/billing.csv", { query: apiQuery(view, { compare: false }) }),
    name: `${tenant}-bill-lines.csv`,
    what: say("bill lines"),
  };
}

/** The service makes no file of more sums. */
const MOST_SUMS = 10_000;

/** The sums of a view by some dimensions, in the finest units of time of which there are not too many sums. */
export function sumsFile(
  tenant: string,
  view: View,
  by: readonly string[],
  sums: { values: number; days: number },
): File {
  const days: [Unit, number][] = [
    ["day", 1],
    ["week", 7],
    ["month", 30],
  ];
  const fits = days.find(([, length]) => sums.values * (sums.days / length + 1) <= MOST_SUMS);
  return {
    href: address(tenant, "/chargebacks/aggregate.csv", sumsOf(view, by, fits?.[0] ?? "month")),
    name: `${tenant}-${by.map((each) => each.replace(/\W+/g, "-")).join("-")}.csv`,
  };
}
