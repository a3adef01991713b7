/** Pictures of the page that are small enough to keep: PNG with a palette of at most 256 colours. */
import { mkdirSync, writeFileSync } from "node:fs";
import { crc32, deflateSync, inflateSync } from "node:zlib";
import type { Page } from "playwright-core";

/** Where pictures are kept, if they are wanted. */
export const ARTIFACTS = process.env.ARTIFACTS;
/** The pictures of the documentation end here, where a reader knows what the rest looks like. */
const MOST_HEIGHT = 1700;

/** Wait until nothing moves but what never ends, as it does while something loads: also without motion, colours change in
 * a frame of their own, parents before children. */
export async function still(page: Page): Promise<void> {
  await page.evaluate(async () => {
    do await new Promise(requestAnimationFrame);
    while (
      document
        .getAnimations()
        .some((each) => each.playState === "running" && each.effect?.getComputedTiming().endTime !== Infinity)
    );
  });
}

/** Keeps a picture of the page as it is. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!ARTIFACTS) return;
  mkdirSync(ARTIFACTS, { recursive: true });
  const size = await page.evaluate(() => ({
    width: document.documentElement.clientWidth,
    height: document.documentElement.scrollHeight,
  }));
  const clip = { x: 0, y: 0, ...size, height: Math.min(size.height, MOST_HEIGHT) };
  writeFileSync(`${ARTIFACTS}/${name}`, withPalette(await page.screenshot({ fullPage: true, clip })));
}

/** Keeps pictures of it at some widths, in light and dark. */
export async function pictures(page: Page, name: string, widths: readonly number[] = [1440, 360]): Promise<void> {
  if (!ARTIFACTS) return;
  const before = page.viewportSize();
  for (const colorScheme of ["light", "dark"] as const)
    for (const width of widths) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await still(page);
      await picture(page, `${name}-${colorScheme}-${width}.png`);
    }
  await page.emulateMedia({ colorScheme: "light" });
  if (before) await page.setViewportSize(before);
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const MOST_COLOURS = 256;

interface Pixels {
  width: number;
  height: number;
  /** One number per pixel, 0xRRGGBB. */
  colours: Uint32Array;
}

/** The same picture with a palette. */
function withPalette(png: Buffer): Buffer {
  const { width, height, colours } = decode(png);
  const counts = new Map<number, number>();
  for (const colour of colours) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const boxes = split(counts);
  const places = new Map<number, number>();
  for (const [place, box] of boxes.entries()) for (const colour of box) places.set(colour, place);
  const lines = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = places.get(colours[y * width + x] ?? 0) ?? 0;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const palette = Buffer.from(boxes.flatMap((box) => channels(average(box, counts))));
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", header),
    chunk("PLTE", palette),
    chunk("IDAT", deflateSync(lines, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** The colours in at most so many boxes: the one that spreads most, weighed by its pixels, is cut in two (median cut). */
function split(counts: ReadonlyMap<number, number>): number[][] {
  const boxes = [[...counts.keys()]];
  while (boxes.length < MOST_COLOURS) {
    const worst = boxes
      .map((box) => spread(box, counts))
      .reduce((a, b, n, all) => (b.score > (all[a]?.score ?? 0) ? n : a), 0);
    const box = boxes[worst];
    if (!box || box.length < 2) break;
    const { channel } = spread(box, counts);
    box.sort((a, b) => (channels(a)[channel] ?? 0) - (channels(b)[channel] ?? 0));
    let left = pixels(box, counts) / 2;
    const cut = box.findIndex((colour) => {
      left -= counts.get(colour) ?? 0;
      return left <= 0;
    });
    boxes.push(box.splice(Math.min(box.length - 1, Math.max(1, cut))));
  }
  return boxes;
}

function spread(box: readonly number[], counts: ReadonlyMap<number, number>): { score: number; channel: number } {
  if (box.length < 2) return { score: 0, channel: 0 };
  const widths = [0, 1, 2].map((channel) => {
    let [low, high] = [255, 0];
    for (const colour of box) {
      const value = (colour >> (16 - 8 * channel)) & 255;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return high - low;
  });
  const width = Math.max(...widths);
  return { score: width * Math.sqrt(pixels(box, counts)), channel: widths.indexOf(width) };
}

function pixels(box: readonly number[], counts: ReadonlyMap<number, number>): number {
  return box.reduce((all, colour) => all + (counts.get(colour) ?? 0), 0);
}

function average(box: readonly number[], counts: ReadonlyMap<number, number>): number {
  const all = pixels(box, counts);
  const means = [16, 8, 0].map((shift) =>
    Math.round(box.reduce((sum, colour) => sum + ((colour >> shift) & 255) * (counts.get(colour) ?? 0), 0) / all),
  );
  return ((means[0] ?? 0) << 16) | ((means[1] ?? 0) << 8) | (means[2] ?? 0);
}

function channels(colour: number): number[] {
  return [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255];
}

/** Decode what Chromium writes: eight bits a channel, with or without alpha, not interlaced. */
function decode(png: Buffer): Pixels {
  const [width, height, type] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25]];
  if (png[24] !== 8 || png[28] !== 0 || (type !== 2 && type !== 6)) throw new Error("not a picture of Chromium's");
  const parts: Buffer[] = [];
  for (let at = SIGNATURE.length; at < png.length; at += png.readUInt32BE(at) + 12)
    if (png.toString("latin1", at + 4, at + 8) === "IDAT")
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const size = type === 6 ? 4 : 3;
  const data = unfiltered(inflateSync(Buffer.concat(parts)), width * size, size);
  const colours = new Uint32Array(width * height);
  for (let n = 0; n < colours.length; n++)
    colours[n] = ((data[n * size] ?? 0) << 16) | ((data[n * size + 1] ?? 0) << 8) | (data[n * size + 2] ?? 0);
  return { width, height, colours };
}

/** Undo the filters of the lines (PNG, third edition, section 9). */
function unfiltered(data: Buffer, stride: number, size: number): Uint8Array {
  const height = data.length / (stride + 1);
  const out = new Uint8Array(height * stride);
  for (let y = 0; y < height; y++) {
    const filter = data[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x >= size ? (out[at - size] ?? 0) : 0;
      const up = y > 0 ? (out[at - stride] ?? 0) : 0;
      const corner = x >= size && y > 0 ? (out[at - stride - size] ?? 0) : 0;
      const guess = [0, left, up, (left + up) >> 1, filter === 4 ? nearest(left, up, corner) : 0][filter ?? 0] ?? 0;
      out[at] = (data[y * (stride + 1) + 1 + x] ?? 0) + guess;
    }
  }
  return out;
}

function nearest(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(name: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), content]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
