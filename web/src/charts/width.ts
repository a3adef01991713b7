import { type RefObject, useEffect, useRef, useState } from "react";

/** The width of an element, in pixels and at least `least`, as it changes; `first` until it is known. */
export function useWidth<T extends HTMLElement>(least: number, first: number): [RefObject<T | null>, number] {
  const frame = useRef<T>(null);
  const [width, setWidth] = useState(first);
  useEffect(() => {
    const box = frame.current;
    if (!box) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.max(least, entry.contentRect.width)));
    observer.observe(box);
    return () => observer.disconnect();
  }, [least]);
  return [frame, width];
}
