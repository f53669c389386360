// Sheets: what the server has to show about one thing, part by part (internal/view/sheet).
// Each part has one component, whatever the thing is.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { bytes, moment, noLine } from "./figures";
import { fillOf } from "./holders";
import { A, health, Panel, useWidth } from "./parts";
import type { Fact, Pair, Sheet, SheetMap, SheetPart, SheetRow, SheetTable } from "./answers";

/** How it is, and all parts; those without a title stand together in a panel. */
export function Parts(p: { of: Sheet }) {
  const first = p.of.parts.findIndex((x) => x.title);
  const untitled = first < 0 ? p.of.parts : p.of.parts.slice(0, first);
  return (
    <>
      <Panel>
        {p.of.status && <p class={"cause " + (p.of.status.level ?? "")}>{p.of.status.text}</p>}
        {untitled.map((x, i) => (
          <PartOf key={i} of={x} />
        ))}
      </Panel>
      {p.of.parts.slice(untitled.length).map((x, i) =>
        empty(x) ? null : x.folded ? (
          <details class="stack" key={i}>
            <summary>{x.title}</summary>
            <pre>{x.notes!.map((n) => n.text).join("\n")}</pre>
          </details>
        ) : (
          <Panel title={x.title} key={i}>
            <PartOf of={x} />
          </Panel>
        ),
      )}
    </>
  );
}

const empty = (x: SheetPart) => !x.pairs?.length && !x.notes?.length && !x.map && !x.table?.rows.length;

function PartOf(p: { of: SheetPart }) {
  const { pairs, table, map, notes } = p.of;
  return (
    <>
      {pairs && <Facts list={pairs} />}
      {table && <Table of={table} />}
      {map && <BankPicture map={map} />}
      {notes && (
        <ul class="fixes">
          {notes.map((n) => (
            <li key={n.text} class={n.level && health(n.level)}>
              {n.text}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function said(v: Fact): ComponentChildren {
  const text = v.time ? moment(v.time) : v.text;
  return v.link ? <A to={v.link}>{text}</A> : text;
}

export function Facts(p: { list: Pair[] }) {
  return (
    <dl class="asked">
      {p.list.flatMap(({ name, value: v }) => [
        <dt key={name}>{name}</dt>,
        <dd key={name + "="} class={v.gone ? "gone" : v.level && health(v.level)} title={v.note}>
          {said(v)}
          {v.gone && v.why && ` (${v.why})`}
        </dd>,
      ])}
    </dl>
  );
}

/** What stands in a cell instead of its text, by the name of its column. */
export type Instead = Record<string, (row: SheetRow, at: number) => ComponentChildren>;

export function Table(p: { of: SheetTable; label?: string; class?: string; instead?: Instead }) {
  const { columns, rows, more } = p.of;
  const most = columns.map((_, i) => Math.max(...rows.map((r) => r.cells[i]?.n ?? 0), 1));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={p.label ?? "table"}>
      <table class={p.class ?? "holders"}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.name} class={c.bar ? "barcol" : c.right ? "num" : ""} title={c.help} aria-label={c.head || c.name}>
                {c.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r, n) => (
            <tr key={n}>
              {columns.map((c, i) => {
                const v = r.cells[i];
                if (!v) return <td key={c.name} />;
                if (c.bar)
                  return (
                    <td key={c.name} class="barcol">
                      <span class="share" style={{ width: ((v.n ?? 0) / most[i]!) * 100 + "%", background: fillOf(r.color ?? 0) }} />
                    </td>
                  );
                return (
                  <td key={c.name} class={(c.right ? "num " : "") + (v.gone ? "muted" : v.level ? health(v.level) : "")} title={v.note ?? v.why}>
                    {i === 0 && r.color ? <i class="swatch" style={{ background: fillOf(r.color) }} aria-hidden="true" /> : null}
                    {i === 0 && r.color ? " " : null}
                    {p.instead?.[c.name]?.(r, n) ?? said(v)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {more && <p class="muted body">{more}</p>}
    </div>
  );
}

const hex = (n: number) => "0x" + n.toString(16);

/** A bank along its addresses, and below it, to scale, the piece that found no room. */
function BankPicture(p: { map: SheetMap }) {
  const { map: m } = p;
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [hover, setHover] = useState("");
  const scale = width / m.size;
  const x = (address: number) => (address - m.base) * scale;
  const piece = m.piece ? Math.min(m.piece.size * scale, width) : 0;
  const look = (at: number) => {
    const address = m.base + at / scale;
    const b = m.spans.find(([from, size]) => from <= address && address < from + size);
    if (!b) {
      setHover((m.exact ? "free at " : "nothing known at ") + hex(Math.floor(address)));
      return;
    }
    const made = b[3] ? `, allocated ${Math.round(b[3] / 100) / 10} s before` : "";
    setHover(`${m.names[b[2] - 1] ?? noLine()}: ${bytes(b[1])} at ${hex(b[0])}${made}`);
  };
  return (
    <figure class="bank missing">
      <div ref={box}>
        <svg
          width={width}
          height={66}
          role="img"
          aria-label={`a bank of ${m.end}${m.piece ? "; " + m.piece.label : ""}`}
          onPointerMove={(e) => look(e.offsetX)}
          onPointerDown={(e) => look(e.offsetX)}
          onPointerLeave={() => setHover("")}
        >
          <rect class={m.exact ? "free" : "free unknown"} width={width} height={40} />
          {m.cut > 0 && <rect class="cut" width={m.cut * scale} height={40} />}
          {m.spans.map(([address, size, holder]) => (
            <rect key={address} class="block" x={x(address)} width={Math.max(size * scale, 0.6)} height={40} style={{ fill: fillOf(holder) }} />
          ))}
          {m.piece && <rect class="piece" x={Math.min(x(m.piece.at), width - piece)} y={46} width={Math.max(piece, 2)} height={12} />}
        </svg>
      </div>
      <p class="under">
        <span>0</span>
        <span class="hover">
          {hover || (
            <>
              {m.piece && <i class="swatch piece" aria-hidden="true" />} {m.piece?.label}
              {m.left_out > 0 && `; ${m.left_out} smaller blocks are not drawn`}
            </>
          )}
        </span>
        <span>{m.end}</span>
      </p>
    </figure>
  );
}
