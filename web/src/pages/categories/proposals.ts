/** Which value is proposed for what has none, and why: the value of others with a similar name, or of others in the same
 * place. */
import type { Aggregate } from "../../api/shapes";
import { NOBODY } from "../../format/names";
import { larger, read, sum, type Units } from "../../money/money";
import { say } from "../../words/say";

/** What is to get a value: an identity, or what a resource costs without an owner. */
export interface Subject {
  kind: "identity" | "resource";
  id: string;
  name: string | null;
}

/** The columns of places in which costs are, the smallest first, and how many identities there have a value. */
const PLACES = {
  cluster_id: (some: number, all: number, name: string) =>
    say("{some} of {all} identities in the cluster {name} have it", { some, all, name }),
  environment_id: (some: number, all: number, name: string) =>
    say("{some} of {all} identities in the environment {name} have it", { some, all, name }),
} as const;
type PlaceColumn = keyof typeof PLACES;

interface Place {
  id: string;
  name: string;
}

/** Something that has costs: the value of more than half of its assigned cost, if there is one, and the places where most
 * of its cost is. */
export interface Neighbour extends Subject {
  value: string | null;
  places: Readonly<Partial<Record<PlaceColumn, Place>>>;
}

export interface Proposal {
  value: string;
  /** Such as `8 of 9 named payments-… have it`. */
  why: string;
}

/** A proposal, and the subjects that it is for. */
export interface Offer<S extends Subject> extends Proposal {
  subjects: readonly S[];
}

/** By what sums are grouped that `neighboursOf` reads. */
export const columnsOf = (kind: Subject["kind"], by: string): string[] => [`${kind}_id`, ...Object.keys(PLACES), by];

/** Everything of a kind that has costs; `by` is the column of values, in which `unassigned` is no value. */
export function neighboursOf(
  kind: Subject["kind"],
  { buckets, names }: Pick<Aggregate, "buckets" | "names">,
  by: string,
  unassigned: string,
): Neighbour[] {
  const column = `${kind}_id`;
  const named = (column: string, id: string) => names?.[column]?.[id] ?? null;
  return [...Map.groupBy(buckets, (each) => each.dimensions[column] ?? "")]
    .filter(([id]) => id !== "" && id !== NOBODY)
    .map(([id, all]) => {
      const places = Object.keys(PLACES).flatMap((each) => {
        const [most] = sumsOf(all, each);
        return most ? [[each, { id: most[0], name: named(each, most[0]) ?? most[0] }]] : [];
      });
      const assigned = all.filter((each) => each.dimensions[by] !== unassigned);
      return {
        kind,
        id,
        name: named(column, id),
        value: mainOf(sumsOf(assigned, by)),
        places: Object.fromEntries(places),
      };
    });
}

/** What each value of a column costs, the highest first. */
function sumsOf(buckets: Aggregate["buckets"], column: string): [string, Units][] {
  const amountOf = (each: Aggregate["buckets"][number]) => read(each.direct_amount ?? each.total_amount);
  return [...Map.groupBy(buckets, (each) => each.dimensions[column] ?? "")]
    .filter(([value]) => value !== "")
    .map(([value, all]): [string, Units] => [value, sum(all.map(amountOf))])
    .sort(([, a], [, b]) => larger(a, b));
}

/** The value with more than half of the cost; null if none has: what many share is nobody's. */
function mainOf(sums: readonly [string, Units][]): string | null {
  const [most] = sums;
  return most && 2n * most[1] > sum(sums.map(([, amount]) => amount)) ? most[0] : null;
}

/** What the provider made up as an id says nothing about whose it is. */
const MADE_UP = /^[a-z]{1,6}-[a-z0-9]+$/;

function nameOf({ id, name }: Subject): string {
  return name ?? (MADE_UP.test(id) ? "" : id);
}

/** The beginnings of a name that end between two of its words, the longest first. */
function beginningsOf(name: string): string[] {
  const ends = [...name.matchAll(/[-_.:/ ]+/g)].map(({ index, 0: between }) => index + between.length);
  return ends
    .map((end) => name.slice(0, end))
    .filter((each) => /\p{L}{2}/u.test(each))
    .reverse();
}

const startsWith = (name: string, beginning: string) => name.toLowerCase().startsWith(beginning.toLowerCase());

/** The value that at least two, and two in three, of some neighbours have. */
function commonOf(neighbours: readonly Neighbour[]): { value: string; times: number } | null {
  const groups = [...Map.groupBy(neighbours, (each) => each.value ?? "")].sort(([, a], [, b]) => b.length - a.length);
  const [[value, { length: times }] = ["", { length: 0 }]] = groups;
  return times >= 2 && 3 * times >= 2 * neighbours.length ? { value, times } : null;
}

/** What most of some neighbours have; `why` says how many of how many. */
function proposed(neighbours: readonly Neighbour[], why: (some: number, all: number) => string): Proposal | null {
  const common = commonOf(neighbours);
  return common && { value: common.value, why: why(common.times, neighbours.length) };
}

/** What is proposed for a subject; `neighbours` may have the subject itself, `called` says what each value is called. */
export function proposalFor(
  subject: Subject,
  neighbours: readonly Neighbour[],
  called: ReadonlyMap<string, string>,
): Proposal | null {
  const isSubject = (each: Neighbour) => each.kind === subject.kind && each.id === subject.id;
  const others = neighbours.filter((each) => each.value !== null && !isSubject(each));
  const name = nameOf(subject);
  const word = wordOf(name, called);
  // What comes before the word of a value, such as `prod-`, says less than the word.
  const beginnings = beginningsOf(name).filter((each) => word === null || each.length > word.at);
  for (const beginning of beginnings) {
    const alike = others.filter((each) => startsWith(nameOf(each), beginning));
    const found = proposed(alike, (some, all) =>
      say("{some} of {all} named {beginning}… have it", { some, all, beginning }),
    );
    if (found) return found;
  }
  if (word) return { value: word.value, why: say("the name has {word} in it", { word: word.text }) };
  return inPlaceOf(neighbours.find(isSubject), others);
}

interface Word {
  value: string;
  text: string;
  /** Where it begins in the name. */
  at: number;
}

/** The first word of a name that is a value, or what a value is called. */
function wordOf(name: string, called: ReadonlyMap<string, string>): Word | null {
  for (const { 0: text, index: at } of name.matchAll(/[^-_.:/ ]+/g)) {
    const isIt = (each: string) => each.toLowerCase() === text.toLowerCase();
    const found = [...called].find(([value, its]) => isIt(value) || isIt(its));
    if (found) return { value: found[0], text, at };
  }
  return null;
}

function inPlaceOf(subject: Neighbour | undefined, others: readonly Neighbour[]): Proposal | null {
  for (const column of Object.keys(PLACES) as PlaceColumn[]) {
    const place = subject?.places[column];
    if (!place) continue;
    const there = others.filter((each) => each.kind === "identity" && each.places[column]?.id === place.id);
    const found = proposed(there, (some, all) => PLACES[column](some, all, place.name));
    if (found) return found;
  }
  return null;
}

/** The proposals for some subjects by value, that for most of them first. */
export function offersOf<S extends Subject>(
  subjects: readonly S[],
  propose: (subject: S) => Proposal | null,
): Offer<S>[] {
  const found = subjects.flatMap((subject) => {
    const proposal = propose(subject);
    return proposal ? [{ subject, ...proposal }] : [];
  });
  return [...Map.groupBy(found, (each) => each.value)]
    .map(([value, all]) => ({
      value,
      why: [...new Set(all.map((each) => each.why))].join("; "),
      subjects: all.map((each) => each.subject),
    }))
    .sort((a, b) => b.subjects.length - a.subjects.length);
}
