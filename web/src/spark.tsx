import { lastHour, length, trail, type Kind } from "./trail";

/** A line without axes, over an hour. What is missing is a gap, not a zero. */
export function Spark(p: { bus: string; kind: Kind; max: number | null; label: string }) {
  const { times } = lastHour();
  const list = trail(p.kind, p.bus).values;
  const known = list.filter((v): v is number => v !== null);
  const low = p.max === null ? Math.min(...known) : 0;
  const high = Math.max(p.max ?? 0, ...known, low + 1e-9);
  const end = times.at(-1) ?? 0;
  const x = (i: number) => (100 - ((end - times[i]!) / length) * 100).toFixed(1);
  const y = (v: number) => (23 - ((v - low) / (high - low)) * 21).toFixed(1);
  // Each stretch that is known, with the ground below it.
  let line = "";
  let ground = "";
  for (let i = 0; i < list.length; ) {
    let j = i;
    let piece = "";
    for (; j < list.length && list[j] !== null; j++) piece += `${x(j)} ${y(list[j]!)}L`;
    if (j > i) {
      piece = piece.slice(0, -1);
      line += j > i + 1 ? "M" + piece : `M${piece}h0.4`;
      ground += `M${x(i)} 24L${piece}L${x(j - 1)} 24Z`;
    }
    i = j + 1;
  }
  return (
    <svg class={"spark " + p.kind} viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={p.label}>
      <path class="area" d={ground} />
      <path class="stroke" d={line} />
    </svg>
  );
}
