import { useMemo } from "preact/compat";
import { missing } from "../../api/answer";
import { useSpread } from "../../api/categories";
import type { Problem } from "../../api/problems";
import { useHere } from "../../app/router";
import { UNASSIGNED } from "../../format/names";
import { type CategoryDocument, nameIn, valuesOf } from "./document";
import { columnsOf, neighboursOf, type Proposal, proposalFor, type Subject } from "./proposals";

interface Proposing {
  propose: (subject: Subject) => Proposal | null;
  /** The values that the document names or that costs have, in order. */
  values: readonly string[];
  /** Whether it is known what is proposed. */
  isKnown: boolean;
  /** Why it is not known, if something went wrong. */
  problem: Problem | null;
}

/** What is proposed for subjects by what has values in the period; nothing while that is not known, or without a document. */
export function useProposals(categoryKey: string, document: CategoryDocument | null): Proposing {
  const { tenant, view } = useHere();
  const by = `category:${categoryKey}`;
  const ask = (kind: Subject["kind"]) => [tenant ?? "", view, columnsOf(kind, by), document !== null] as const;
  const answers = [useSpread(...ask("identity")), useSpread(...ask("resource"))] as const;
  const problem = answers.map((each) => missing(each)?.problem ?? null).find((each) => each !== null) ?? null;
  const [identities, resources] = answers.map(({ known }) => known?.data);
  const found = useMemo(() => {
    const unassigned = document?.default ?? UNASSIGNED;
    const neighbours =
      document && identities && resources
        ? [
            ...neighboursOf("identity", identities, by, unassigned),
            ...neighboursOf("resource", resources, by, unassigned),
          ]
        : [];
    const had = neighbours.flatMap((each) => (each.value === null ? [] : [each.value]));
    const values = [...new Set([...valuesOf(document ?? {}), ...had])].sort();
    const called = new Map(values.map((each) => [each, nameIn(document ?? {}, each)]));
    return { values, propose: (subject: Subject) => proposalFor(subject, neighbours, called) };
  }, [document, identities, resources, by]);
  return { ...found, isKnown: identities !== undefined && resources !== undefined, problem };
}
