import { say } from "../words/say";

/** The words of the page that a new reader may ask about, in the order in which they are explained. */
export const GLOSSARY = {
  "no-owner": [
    say("No owner"),
    say(
      "Cost for which no identity was found: who used or owns it is not known. It is part of the total all the same.",
    ),
  ],
  "not-assigned": [
    say("Not assigned"),
    say(
      "Cost to which no rule of a cost category gives a value, such as a cost centre. Its identity may well be known.",
    ),
  ],
  "not-tagged": [say("Without this tag"), say("Cost of which neither the identity nor the resource has the tag.")],
  usage: [say("By usage"), say("The part of a cost that follows what was measured, or that goes to a known owner.")],
  shared: [say("Shared"), say("The part of a cost that is divided evenly, or in proportion to other costs.")],
  identity: [
    say("Identity"),
    say("A service account, a user, an identity pool or a principal: what a cost can be charged to."),
  ],
  category: [
    say("Cost category"),
    say(
      "Rules, with dates, that give each cost a value, such as a cost centre or a team. Values can belong to others, and can hand on what they cost.",
    ),
  ],
  policy: [
    say("Policy"),
    say(
      "How the lines of a product are divided: in portions, each with the ways to split it, of which the first that applies is taken.",
    ),
  ],
  waiting: [
    say("Not calculated yet"),
    say(
      "A day that is billed and whose cost is not split yet, because something is missing. No sum of the page has it.",
    ),
  ],
  equal: [
    say("Equal to the bill"),
    say("The shares of a day sum to what the provider billed for it, to the last of twelve decimal places."),
  ],
  revision: [
    say("Revision"),
    say(
      "What a day contained after one calculation. A changed bill, policy or measurement makes a new one; the ones before can be shown for a while.",
    ),
  ],
  forecast: [
    say("By the end of the month"),
    say(
      "What was spent, and for each day to come what is usual for its weekday. Eight months of ten should end within the interval.",
    ),
  ],
  finding: [
    say("Finding"),
    say("Something that costs money and was measured to be unused, and what deleting it would save."),
  ],
  statement: [
    say("Statement"),
    say("What one team, cost centre or identity has to book for a month, in cents that add up."),
  ],
  closed: [
    say("Closed month"),
    say(
      "What was booked of it never changes. What is learned of it later is posted to the first open month, as a correction.",
    ),
  ],
} as const satisfies Record<string, readonly [name: string, meaning: string]>;

export type Term = keyof typeof GLOSSARY;

export const isTerm = (text: string): text is Term => text in GLOSSARY;
