// A number that grows as time passes, for what is asked again and again.

import { useEffect, useState } from "preact/hooks";

/** Grows every so many milliseconds; 0: never. */
export function useBeat(every: number): number {
  const [n, set] = useState(0);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => set((x) => x + 1), every);
    return () => clearInterval(timer);
  }, [every]);
  return n;
}
