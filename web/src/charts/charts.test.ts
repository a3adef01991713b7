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

describe("costs over time", () => {
  const FORMS = ["areas", "bars", "lines", "shares"] as const;

  test("the bands together are as high as the total", () => {
    const { y, paths } = geometry(
      { form: "areas", places: 2, bands: [band("a", "10", "20"), band("b", "30", "5")] },
      640,
    );
    expect(paths).toHaveLength(2);
    expect(paths[1]).toContain(`,${y(40)}`);
    expect(paths[1]).toContain(`,${y(25)}`);
  });

  /** The numbers of a path, two by two. */
  const points = (path: string | undefined) =>
    [...(path ?? "").matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)] as const);

  test("a band without costs on a day lies on those below it, and cuts nothing out of the stack", () => {
    const bands = [band("a", "10", "20", "10"), band("b", "30", "0", "30")];
    const { x, y, paths } = geometry({ form: "areas", places: 3, bands }, 640);
    const onSecond = points(paths[1]).filter(([at]) => at === x(1));
    expect(onSecond.map(([, height]) => height)).toEqual([y(20), y(20)]);
  });

  test("refunds stand below zero, and the axis reaches no further than they do", () => {
    const {
      x,
      y,
      paths,
      ticks: marks,
    } = geometry({ form: "areas", places: 2, bands: [band("a", "2000", "1500"), band("b", "-3", "400")] }, 640);
    expect(marks).toEqual([0, 500, 1000, 1500, 2000]);
    expect(y(-3)).toBe(HEIGHT - PAD.bottom);
    const onFirst = points(paths[1]).filter(([at]) => at === x(0));
    expect(onFirst.map(([, height]) => Math.round(height))).toEqual(
      [2000, 2000, -3, 0].map((each) => Math.round(y(each))),
    );
  });

  test("a day of which a band knows nothing is an error, and no zero", () => {
    for (const form of FORMS)
      expect(() => geometry({ form, places: 2, bands: [band("a", "10")] }, 640)).toThrow("there is nothing at 1 of 1");
  });

  test("one day is a bar, and no day is nothing", () => {
    const one = { places: 1, bands: [band("a", "10")], before: [read("5")] };
    for (const form of FORMS) {
      expect(geometry({ form, ...one }, 640)).toMatchObject({ bars: true, before: null });
      expect(geometry({ form, places: 0, bands: [band("a")] }, 640).paths).toEqual([""]);
    }
  });

  test("what was not known before is a gap", () => {
    const before = [null, read("1"), read("2")];
    const known = geometry({ form: "areas", places: 3, bands: [band("a", "1", "1", "1")], before }, 640);
    expect(known.before?.match(/M/g)).toHaveLength(1);
    expect(known.before?.match(/L/g)).toHaveLength(1);
  });

  test("bars stand apart, on one another, and the first and the last are whole", () => {
    const bands = [band("a", "10", "20"), band("b", "30", "0")];
    const { x, y, paths, under } = geometry({ form: "bars", places: 2, bands }, 640);
    const corners = (path: string | undefined) => [...(path ?? "").matchAll(/M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)/g)];
    expect(corners(paths[0])).toHaveLength(2);
    // What is nothing is not drawn.
    expect(corners(paths[1])).toHaveLength(1);
    const [, left = "", bottom, right, top] = corners(paths[1])[0] ?? [];
    expect([bottom, top].map((each) => Math.round(Number(each)))).toEqual([y(10), y(40)].map(Math.round));
    expect(Number(left)).toBeGreaterThan(PAD.left);
    expect(Number(right)).toBeLessThan((x(0) + x(1)) / 2);
    expect([0, 0.49, 0.51, 1].map(under)).toEqual([0, 0, 1, 1]);
  });

  test("lines begin at zero, each for itself", () => {
    const { y, paths } = geometry(
      { form: "lines", places: 2, bands: [band("a", "10", "20"), band("b", "30", "5")] },
      640,
    );
    expect(points(paths[1]).map(([, height]) => height)).toEqual([y(30), y(5)]);
  });

  test("shares fill the chart on each day that has costs, whatever refunds it has", () => {
    const bands = [band("a", "10", "0", "5"), band("b", "30", "0", "-5")];
    const { y, paths, ticks } = geometry({ form: "shares", places: 3, bands, before: [read("1"), null, null] }, 640);
    expect(ticks).toEqual([0, 25, 50, 75, 100]);
    const heights = paths.map((path) => points(path).map(([, height]) => height));
    expect(heights[0]?.slice(0, 3)).toEqual([y(25), y(0), y(100)]);
    expect(heights[1]?.slice(0, 3)).toEqual([y(100), y(0), y(100)]);
  });

  test("what is expected begins where the costs end, and is on the chart", () => {
    const ahead = { places: 2, low: read("30"), expected: read("40"), high: read("90") };
    const {
      x,
      y,
      ahead: cone,
      under,
    } = geometry({ form: "areas", places: 2, bands: [band("a", "10", "20")], ahead }, 640);
    const rounded = (cone?.range.match(/[\d.]+/g) ?? []).map((each) => Math.round(Number(each)));
    expect(rounded).toEqual([x(1), y(20), x(3), y(30), y(90)].map(Math.round));
    expect(x(3)).toBeCloseTo(640 - PAD.right);
    expect(y(90)).toBeGreaterThanOrEqual(PAD.top);
    expect(under(1)).toBe(1);
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
