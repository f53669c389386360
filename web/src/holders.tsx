// The lines of a program that hold memory: their colours, and the legend that
// names them.

import { bytes, clock, moment, noLine, span } from "./figures";
import { state } from "./store";
import type { MapHolder } from "./answers";

/** Lines beyond so many share the last colour. */
const colours = 8;

/** The name of a line's colour: the eighth and all after it share one. */
export const hueOf = (number: number): string => (number === 0 ? "muted" : "line" + Math.min(number, colours));

/** The colour of a line, for style sheets. */
export const fillOf = (number: number): string => `var(--${hueOf(number)})`;

/** A line in the legend, or several that share a colour. */
export interface Entry {
  number: number;
  name: string;
  held: MapHolder[];
}

/** What the legend lists: a line each as far as there are colours, the others together, then what no line is known of. */
export function entriesOf(list: MapHolder[]): Entry[] {
  const own = list.filter((h) => h.number > 0 && h.number < colours);
  const rest = list.filter((h) => h.number >= colours);
  const unknown = list.filter((h) => h.number === 0);
  const out = own.sort((a, b) => a.number - b.number).map((h): Entry => ({ number: h.number, name: h.line, held: [h] }));
  if (rest.length === 1 && !rest[0]!.other_lines) out.push({ number: colours, name: rest[0]!.line, held: rest });
  else if (rest.length > 0) out.push({ number: colours, name: `${rest.reduce((n, h) => n + (h.other_lines || 1), 0)} other lines`, held: rest });
  if (unknown.length > 0) out.push({ number: 0, name: noLine(), held: unknown });
  return out;
}

/** How old something is that was made at a time in Unix milliseconds. */
export function ageOf(born: number): string {
  if (!born) return "age not known";
  const now = Date.parse(state.snap?.time ?? "") || Date.now();
  const then = now - born > 20 * 3600e3 ? moment(new Date(born).toISOString()) : clock(new Date(born));
  return `${span((now - born) / 1000)} old, since ${then}`;
}

const count = (n: number): string => (n === 1 ? "1 block" : `${n} blocks`);

/** Whose the colours are. What is pointed at, has the focus or was chosen stands out in the map. */
export function HolderLegend(p: { entries: Entry[]; of: string; chosen: number | null; choose: (number: number | null) => void; light: (number: number | null) => void }) {
  return (
    <ul class="lines" aria-label="Lines that hold it">
      {p.entries.map((e) => {
        const bank = e.held.reduce((n, h) => n + h.bank_bytes, 0);
        const blocks = e.held.reduce((n, h) => n + h.blocks, 0);
        const born = Math.min(...e.held.map((h) => h.oldest_ms || Infinity));
        const tensors = [...new Set(e.held.flatMap((h) => h.sites.flatMap((s) => s.tensor ?? [])))];
        return (
          <li key={e.number}>
            <button
              aria-pressed={p.chosen === e.number}
              title={[e.name, ...e.held.slice(0, 20).map((h) => (h.line === e.name ? "" : h.line)), ...tensors.slice(0, 8)].filter(Boolean).join("\n")}
              onClick={() => p.choose(p.chosen === e.number ? null : e.number)}
              onPointerEnter={() => p.light(e.number)}
              onPointerLeave={() => p.light(null)}
              onFocus={() => p.light(e.number)}
              onBlur={() => p.light(null)}
            >
              <i class="swatch" style={{ background: fillOf(e.number) }} aria-hidden="true" />
              <span class="line">{e.name}</span>
              {tensors.length > 0 && <span class="muted tensor">{tensors.length === 1 ? tensors[0] : `${tensors.length} kinds of tensors`}</span>}
              <b class="num">{bytes(bank)} {p.of}</b>
              <span class="muted">
                {count(blocks)}, {born === Infinity ? "age not known" : `oldest ${ageOf(born)}`}
              </span>
              {e.held.some((h) => h.grew) && <span class="warn">grew step by step</span>}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
