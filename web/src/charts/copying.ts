/** A chart as a picture: PNG, for a message or a slide. */
import { Problem } from "../api/problems";
import { download } from "../ui/csv";
import { say } from "../words/say";

const SCALE = 2;
const PADDING = 16;
const LINE = 20;
/** What makes a path, a line or a text look as it does on the page; the picture knows no style sheet. */
const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "text-anchor"];

/** What stands above and below a chart in its picture. */
export interface Caption {
  title: string;
  /** Each with its class in the chart, which says its colour. */
  legend: readonly { name: string; colour: string }[];
}

/** Draws a chart with its caption, as it looks now: light or dark, as wide as it is. */
async function pictureOf(chart: SVGSVGElement, { title, legend }: Caption): Promise<Blob> {
  const { width, height } = chart.getBoundingClientRect();
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(alone(chart)))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("no 2d context");
  const style = getComputedStyle(chart);
  const write = (size: string) => {
    pen.font = `${size} ${style.fontFamily}`;
  };
  write("12px");
  const entries = placed(
    legend.map((each) => ({ ...each, width: pen.measureText(each.name).width + 32 })),
    width,
  );
  const rows = (entries.at(-1)?.row ?? -1) + 1;
  const whole = height + (rows + 1) * LINE + 3 * PADDING;
  canvas.width = (width + 2 * PADDING) * SCALE;
  canvas.height = whole * SCALE;
  pen.scale(SCALE, SCALE);
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, width + 2 * PADDING, whole);
  pen.fillStyle = style.color;
  write("600 14px");
  pen.fillText(title, PADDING, PADDING + 14, width);
  pen.drawImage(image, PADDING, PADDING + LINE + 8, width, height);
  write("12px");
  for (const { name, colour, row, left } of entries) {
    const top = height + LINE * (row + 1) + 2 * PADDING;
    pen.fillStyle = shade(chart, colour);
    pen.fillRect(PADDING + left, top + 4, 10, 10);
    pen.fillStyle = style.color;
    pen.fillText(name, PADDING + left + 16, top + 13);
  }
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no blob"))), "image/png"),
  );
}

/** What colour a class has in a chart. */
function shade(chart: SVGSVGElement, colour: string): string {
  const look = getComputedStyle(chart.querySelector(`.${colour}`) ?? chart);
  return look.fill === "none" ? look.stroke : look.fill;
}

/** The same drawing, with its look in itself. */
function alone(chart: SVGSVGElement): SVGSVGElement {
  const copy = chart.cloneNode(true) as SVGSVGElement;
  const { width, height } = chart.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const drawn = copy.querySelectorAll<SVGElement>("*");
  for (const [index, each] of chart.querySelectorAll<SVGElement>("*").entries()) {
    const look = getComputedStyle(each);
    for (const name of LOOK) drawn[index]?.style.setProperty(name, look.getPropertyValue(name));
  }
  return copy;
}

/** Entries in rows that are no wider than the chart. */
function placed<T extends { width: number }>(
  entries: readonly T[],
  most: number,
): (T & { row: number; left: number })[] {
  let [row, left] = [0, 0];
  return entries.map((each) => {
    if (left > 0 && left + each.width > most) [row, left] = [row + 1, 0];
    const found = { ...each, row, left };
    left += each.width;
    return found;
  });
}

/** Puts the picture on the clipboard or, where the browser does not allow that, into a file. Throws a {@link Problem}. */
export async function copyPicture(chart: SVGSVGElement, caption: Caption, name: string): Promise<void> {
  // The promise itself is given, because browsers take it only within the click.
  const made = pictureOf(chart, caption).catch(() => {
    throw new Problem(
      0,
      say("Copy as picture"),
      say("This browser could not make the picture. Try again, or take a screenshot instead."),
    );
  });
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": made })]);
  } catch {
    const href = URL.createObjectURL(await made);
    download({ href, name });
    URL.revokeObjectURL(href);
  }
}
