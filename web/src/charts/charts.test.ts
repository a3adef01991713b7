import { describe, expect, test } from "vitest";
import { read } from "../money/money";
import { type Band, geometry, HEIGHT, PAD } from "./areas";
import { heats } from "./calendar";
import { colours } from "./colours";
import { type Link, type Node, layout as place } from "./ribbons";
import { linear, ticks } from "./scale";
import { type Group, layout } from "./treemap";

function band(key: string, ...amounts: string[]): Band {
  return { key, name: key, colour: "k1", amounts: amounts.map(read) };
}

describe("scale", () => {
  test("ticks are round and hold the values", () => {
    expect(ticks(0, 2193)).toEqual([0, 500, 1000, 1500, 2000, 2500]);
    expect(ticks(-30, 80)).toEqual([-25, 0, 25, 50, 75, 100]);
    expect(ticks(0, 0)).toEqual([0]);
  });

  test("a line goes through its ends", () => {
    const scale = linear([10, 20], [100, 0]);
    expect([scale(10), scale(20), scale(15)]).toEqual([100, 0, 50]);
  });
});

describe("stacked areas", () => {
  const times = ["2026-11-01", "2026-11-02"];

  test("the bands together are as high as the total", () => {
    const { y, paths } = geometry(times, [band("a", "10", "20"), band("b", "30", "5")], null, 640);
    expect(paths).toHaveLength(2);
    expect(paths[1]).toContain(`,${y(40)}`);
    expect(paths[1]).toContain(`,${y(25)}`);
  });

  /** The numbers of a path, two by two. */
  const points = (path: string | undefined) =>
    [...(path ?? "").matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)] as const);

  test("a band without costs on a day lies on those below it, and cuts nothing out of the stack", () => {
    const days = ["1", "2", "3"];
    const { x, y, paths } = geometry(days, [band("a", "10", "20", "10"), band("b", "30", "0", "30")], null, 640);
    const onSecond = points(paths[1]).filter(([at]) => at === x(1));
    expect(onSecond.map(([, height]) => height)).toEqual([y(20), y(20)]);
  });

  test("refunds stand below zero, and the axis reaches no further than they do", () => {
    const {
      x,
      y,
      paths,
      ticks: marks,
    } = geometry(times, [band("a", "2000", "1500"), band("b", "-3", "400")], null, 640);
    expect(marks).toEqual([0, 500, 1000, 1500, 2000]);
    expect(y(-3)).toBe(HEIGHT - PAD.bottom);
    const onFirst = points(paths[1]).filter(([at]) => at === x(0));
    expect(onFirst.map(([, height]) => Math.round(height))).toEqual(
      [2000, 2000, -3, 0].map((each) => Math.round(y(each))),
    );
  });

  test("a day of which a band knows nothing is an error, and no zero", () => {
    expect(() => geometry(times, [band("a", "10")], null, 640)).toThrow("there is nothing at 1 of 1");
  });

  test("one day is a bar, and no day is nothing", () => {
    expect(geometry(["2026-11-01"], [band("a", "10")], [read("5")], 640)).toMatchObject({ bars: true, before: null });
    expect(geometry([], [band("a")], null, 640).paths).toEqual([""]);
  });

  test("what was not known before is a gap", () => {
    const known = geometry(["1", "2", "3"], [band("a", "1", "1", "1")], [null, read("1"), read("2")], 640);
    expect(known.before?.match(/M/g)).toHaveLength(1);
    expect(known.before?.match(/L/g)).toHaveLength(1);
  });
});

describe("colours", () => {
  test("they follow from the values alone, and nobody is grey", () => {
    const shown = ["orders", "UNALLOCATED", "payments", "search"];
    const seen = colours("identity_id", shown);
    expect(seen[1]).toBe("k-nobody");
    expect(new Set(seen).size).toBe(4);
    colours("identity_id", ["stock", "search", "billing"]);
    expect(colours("identity_id", shown)).toEqual(seen);
  });

  test("the larger of two values keeps its colour", () => {
    const many = Array.from({ length: 9 }, (_, number) => `team ${number}`);
    const alone = new Map(many.map((each) => [each, colours("tag:team", [each])[0]]));
    const [first, second] =
      many
        .flatMap((one) => many.filter((two) => one < two && alone.get(one) === alone.get(two)).map((two) => [one, two]))
        .at(0) ?? [];
    expect(first).toBeDefined();
    expect(colours("tag:team", [String(first), String(second)])[0]).toBe(alone.get(String(first)));
    expect(colours("tag:team", [String(second), String(first)])[0]).toBe(alone.get(String(second)));
  });

  test("eight values have eight colours, a ninth has one of them", () => {
    const nine = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    expect(new Set(colours("many", nine.slice(0, 8))).size).toBe(8);
    expect(colours("many", nine)[8]).toMatch(/^k[1-8]$/);
  });
});

test("days are coloured between the least and the most", () => {
  const heat = heats([{ amount: read("10") }, { amount: read("20") }, { amount: null }]);
  expect([heat(read("10")), heat(read("15")), heat(read("20"))]).toEqual([1, 3, 5]);
});

describe("treemap", () => {
  const group = (key: string, ...amounts: string[]): Group => ({
    key,
    name: key,
    colour: "k1",
    href: "",
    leaves: amounts.map((each, n) => ({ key: `${n}`, name: `${n}`, amount: read(each), href: "" })),
  });

  test("leaves lie inside of their group and do not overlap", () => {
    const boxes = layout([group("a", "50", "30", "5"), group("b", "15")], 800, 500);
    const outer = boxes.find((each) => each.name === "a");
    const leaves = boxes.filter((each) => each.kind === "topic" && each.key.startsWith("a "));
    expect(leaves).toHaveLength(3);
    for (const one of leaves) {
      expect(one.x).toBeGreaterThanOrEqual(outer?.x ?? 1e9);
      expect(one.y + one.height).toBeLessThanOrEqual((outer?.y ?? 0) + (outer?.height ?? 0));
      for (const other of leaves)
        if (one !== other)
          expect(
            one.x + one.width <= other.x ||
              other.x + other.width <= one.x ||
              one.y + one.height <= other.y ||
              other.y + other.height <= one.y,
          ).toBe(true);
    }
  });

  test("refunds have no area", () => {
    expect(layout([group("a", "10", "-5")], 400, 300).filter((each) => each.kind === "topic")).toHaveLength(1);
  });
});

describe("map", () => {
  const node = (column: number, name: string, amount: string): Node => ({
    column,
    name,
    amount: read(amount),
    note: "",
    tone: "same",
    href: null,
    title: name,
  });
  const link = (source: number, target: number, amount: string): Link => ({
    source,
    target,
    amount: read(amount),
    tone: "same",
    title: "",
  });
  const nodes = [
    node(0, "prod", "90"),
    node(0, "dev", "10"),
    node(1, "a", "60"),
    node(1, "b", "39.9"),
    node(1, "c", "0.1"),
  ];
  const links = [link(0, 2, "60"), link(0, 3, "30"), link(1, 3, "9.9"), link(1, 4, "0.1")];

  test("nodes of a column do not overlap, and each has room for its name", () => {
    const { places } = place(nodes, links, 900, 430);
    for (const column of [
      [0, 1],
      [2, 3, 4],
    ]) {
      const boxes = column.map((n) => places[n]).filter((each) => each !== undefined);
      boxes.forEach((box, n) => {
        expect(box.height).toBeGreaterThanOrEqual(22);
        const next = boxes[n + 1];
        if (next) expect(box.y + box.height).toBeLessThan(next.y);
      });
      const last = boxes.at(-1);
      expect((last?.y ?? 0) + (last?.height ?? 0)).toBeLessThanOrEqual(430.001);
    }
  });

  test("ribbons fill both sides of their nodes", () => {
    const { places, ribbons } = place(nodes, links, 900, 430);
    const [first, second] = ribbons;
    expect(first?.startsWith(`M${(places[0]?.x ?? 0) + (places[0]?.width ?? 0)} 0C`)).toBe(true);
    const numbers = second?.match(/-?[\d.]+/g)?.map(Number) ?? [];
    expect(Math.max(numbers[1] ?? 0, numbers.at(-1) ?? 0)).toBeCloseTo(places[0]?.height ?? 0, 6);
  });
});
