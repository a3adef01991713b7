import { expect, test } from "vitest";
import type { Budget } from "../api/shapes";
import { idOf, ordered, percentages } from "./budgets";

const budget = (id: string, parent: string | null = null) => ({ id, name: id.toUpperCase(), parent }) as Budget;

test("budgets stand below those that they are a part of, by name", () => {
  const items = [budget("b", "all"), budget("z"), budget("a", "all"), budget("all"), budget("x", "hidden")];
  expect(ordered(items).map((each) => `${".".repeat(each.depth)}${each.budget.id}`)).toEqual([
    "all",
    ".a",
    ".b",
    "x",
    "z",
  ]);
});

test("an id is made of a name", () => {
  expect(idOf("Payments & Refunds (EU)")).toBe("payments-refunds-eu");
  expect(idOf("Größe")).toBe("gro-e");
  expect(idOf("ab ".repeat(40))).toHaveLength(64);
});

test("percentages are read as people write them", () => {
  expect(percentages("80, 100 %")).toEqual(["80", "100"]);
  expect(percentages(" ")).toEqual([]);
});
