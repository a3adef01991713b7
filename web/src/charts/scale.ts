/** Round numbers for an axis from `low`, which no number is below, to `high`, which the last one reaches. */
export function ticks(low: number, high: number, most = 5): number[] {
  const bottom = Math.min(0, low);
  const top = Math.max(0, high);
  if (bottom === top) return [0];
  const raw = (top - bottom) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= raw * 0.999) ?? raw;
  const found: number[] = [];
  for (let at = Math.ceil(bottom / step - 1e-9); at * step < top + step * 0.999; at++) found.push(at * step || 0);
  return found;
}

/** A straight line from a domain to a range. */
export function linear([d0, d1]: [number, number], [r0, r1]: [number, number]): (value: number) => number {
  const slope = d1 === d0 ? 0 : (r1 - r0) / (d1 - d0);
  return (value) => r0 + (value - d0) * slope;
}
