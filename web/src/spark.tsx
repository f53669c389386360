import { trail, type Kind } from "./trail";

/** A line without axes. What is missing is a gap, not a zero. */
export function Spark(p: { bus: string; kind: Kind; max: number | null; label: string }) {
  const list = trail(p.kind, p.bus);
  const known = list.filter((v): v is number => v !== null);
  const low = p.max === null ? Math.min(...known) : 0;
  const high = Math.max(p.max ?? 0, ...known, low + 1e-9);
  const n = Math.max(list.length - 1, 1);
  let d = "";
  let pen = false;
  let first = -1;
  let at = -1;
  list.forEach((v, i) => {
    if (v === null) {
      pen = false;
      return;
    }
    const x = ((i / n) * 100).toFixed(1);
    const y = (23 - ((v - low) / (high - low)) * 21).toFixed(1);
    d += (pen ? "L" : "M") + x + " " + y;
    if (first < 0) first = i;
    at = i;
    pen = true;
  });
  const area = first >= 0 && !list.slice(first, at).includes(null) ? `${d}L${((at / n) * 100).toFixed(1)} 24L${((first / n) * 100).toFixed(1)} 24Z` : "";
  return (
    <svg class={"spark " + p.kind} viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={p.label}>
      {area && <path class="area" d={area} />}
      {known.length > 0 && <path class="stroke" d={d} />}
    </svg>
  );
}
