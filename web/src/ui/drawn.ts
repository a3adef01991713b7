import { useEffect, useState } from "preact/compat";

/** Whether the component has been on the screen: what is asked for then does not delay what is drawn first. */
export function useIsDrawn(): boolean {
  const [isDrawn, setDrawn] = useState(false);
  useEffect(() => setDrawn(true), []);
  return isDrawn;
}
