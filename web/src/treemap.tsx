// Areas as large as what they stand for (squarified).

import { useEffect, useRef, useState } from "preact/hooks";
import { A } from "./parts";
import { bytes } from "./figures";

export interface Tile {
  name: string;
  short?: string; // where there is little room
  bytes: number;
  text: string;
  to?: string;
  kind: "device" | "process" | "part" | "rest";
  children?: Tile[];
}

interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Lays tiles out so that none is a sliver, the largest first. */
export function squarify<T extends { bytes: number }>(list: T[], box: Box): { t: T; box: Box }[] {
  const sorted = list.filter((t) => t.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  const total = sorted.reduce((n, t) => n + t.bytes, 0);
  const out: { t: T; box: Box }[] = [];
  let { x, y, w, h } = box;
  let left = total;
  for (let i = 0; i < sorted.length; ) {
    const side = Math.min(w, h);
    const scale = (w * h) / left;
    let row: T[] = [];
    let sum = 0;
    let worst = Infinity;
    while (i + row.length < sorted.length) {
      const next = sorted[i + row.length]!;
      const area = (sum + next.bytes) * scale;
      const ratios = [...row, next].map((t) => {
        const a = t.bytes * scale;
        const r = (side * side * a) / (area * area);
        return Math.max(r, 1 / r);
      });
      const now = Math.max(...ratios);
      if (now > worst) break;
      worst = now;
      row = [...row, next];
      sum += next.bytes;
    }
    const thick = (sum * scale) / side;
    let at = 0;
    for (const t of row) {
      const len = (t.bytes / sum) * side;
      out.push({ t, box: w >= h ? { x, y: y + at, w: thick, h: len } : { x: x + at, y, w: len, h: thick } });
      at += len;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    left -= sum;
    i += row.length;
  }
  return out;
}

export function Treemap(p: { tiles: Tile[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1000);
  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 1000));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const height = Math.max(220, Math.min(520, p.tiles.length * 60, width * 0.6));
  const total = p.tiles.reduce((n, t) => n + t.bytes, 0);
  return (
    <div ref={box} class="treemap" style={{ height: height + "px" }} role="group" aria-label="Memory by device and process">
      {total === 0 && <p class="empty">Nothing is known to be in use.</p>}
      {squarify(p.tiles, { x: 0, y: 0, w: width, h: height }).map(({ t, box: b }) => {
        const inner = { x: 0, y: 20, w: b.w - 4, h: Math.max(b.h - 24, 1) };
        return (
          <div key={t.name} class="tile device" style={place(b)}>
            <A to={t.to!} class="label">
              {b.w < 150 ? (t.short ?? t.name) : t.name} <span class="num">{t.text}</span>
            </A>
            {squarify(t.children ?? [], inner).map(({ t: c, box: cb }) =>
              c.to ? (
                <A key={c.name} to={c.to} class={"tile " + c.kind} label={roomy(cb) ? undefined : `${c.name}, ${c.text}`}>
                  <Inside b={cb} name={c.name} text={c.text || bytes(c.bytes)} />
                  {roomy(cb) && cb.h > 60 && squarify(c.children ?? [], { x: cb.x + 4, y: cb.y + 34, w: cb.w - 8, h: cb.h - 40 }).map(({ t: part, box: pb }) => (
                    <span key={part.name} class="tile part">
                      <Inside b={pb} name={part.name} text={part.text} />
                    </span>
                  ))}
                </A>
              ) : (
                <div key={c.name} class={"tile " + c.kind}>
                  <Inside b={cb} name={cb.w > 150 ? c.name : ""} text="" />
                </div>
              ),
            )}
          </div>
        );
      })}
    </div>
  );
}

/** Whether there is room for words. */
const roomy = (b: Box) => b.w > 46 && b.h > 18;

const place = (b: Box) => ({ left: b.x + "px", top: b.y + "px", width: b.w + "px", height: b.h + "px" });

function Inside(p: { b: Box; name: string; text: string }) {
  return (
    <span class="inside" style={{ left: p.b.x + 2 + "px", top: p.b.y + "px", width: Math.max(p.b.w - 2, 1) + "px", height: Math.max(p.b.h - 2, 1) + "px" }} title={p.name + " " + p.text}>
      {roomy(p.b) && (
        <>
          <b class="num">{p.text}</b> {p.name}
        </>
      )}
    </span>
  );
}
