import { type RefObject, useEffect, useRef, useState } from "preact/compat";

/** The width and height of an element, in pixels, as they change; nothing until they are known. */
export function useSize<T extends HTMLElement>(): [RefObject<T | null>, number, number] {
  const frame = useRef<T>(null);
  const [[width, height], setSize] = useState([0, 0]);
  useEffect(() => {
    const box = frame.current;
    if (!box) return;
    const observer = new ResizeObserver(
      ([entry]) => entry && setSize([entry.contentRect.width, entry.contentRect.height]),
    );
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return [frame, width, height];
}

/** The width alone, at least `least`; `first` until it is known. */
export function useWidth<T extends HTMLElement>(least: number, first: number): [RefObject<T | null>, number] {
  const [frame, width] = useSize<T>();
  return [frame, width ? Math.max(least, width) : first];
}
