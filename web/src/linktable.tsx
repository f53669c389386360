// Ethernet links, a row each: their state, and what their ends have counted.

import { useState } from "preact/hooks";
import { bytes, mark } from "./figures";
import { health, Panel } from "./parts";
import type { Bound, Channel, Level, Mesh } from "./answers";

interface End {
  index: number;
  chip: string;
  channel: number;
}

export interface Topology {
  described_by: string | null;
  described: string | null;
  unplaced_links: number;
  pairs: { from: number; to: number; pcie: string; ethernet_links: number | null }[];
  links: { from: End; to: End }[];
}

interface Row {
  key: string;
  from: string;
  to: string;
  far: string; // the channel at the other end
  channel: Channel;
}

const unread: Omit<Channel, "a" | "b"> = {
  up: null, up_before_reset: false, retrains: null, corrected_codewords: null, uncorrected_codewords: null, codewords_bound: "exact", a_to_b_bytes_per_s: null, b_to_a_bytes_per_s: null,
};

/** All links: those that are read, and those that UMD has found between chips that are not. */
function rowsOf(top: Topology | null, mesh: Mesh | null): Row[] {
  const rows = new Map<string, Row>();
  for (const l of mesh?.links ?? [])
    for (const c of l.channels) {
      const from = l.a.device + l.a.chip;
      const to = l.b ? l.b.device + l.b.chip : "another host";
      const key = `${from} ${c.a} ${to} ${l.b ? c.b : ""}`;
      rows.set(key, { key, from, to, far: l.b ? String(c.b) : "", channel: c });
    }
  for (const l of top?.links ?? []) {
    const from = l.from.index + l.from.chip;
    const to = l.to.index + l.to.chip;
    const key = `${from} ${l.from.channel} ${to} ${l.to.channel}`;
    if (!rows.has(key) && !rows.has(`${to} ${l.to.channel} ${from} ${l.from.channel}`)) {
      rows.set(key, { key, from, to, far: String(l.to.channel), channel: { a: l.from.channel, b: l.to.channel, ...unread } });
    }
  }
  return [...rows.values()];
}

const states: Record<string, { word: string; level: Level }> = { true: { word: "up", level: "ok" }, false: { word: "down", level: "critical" }, null: { word: "not known", level: "info" } };

/** Down before all others, then those that trained again; a link that works is where its number puts it. */
const worst = (r: Row): number => (r.channel.up === false ? 2e12 : (r.channel.retrains ?? 0));

/** More links than this are shown only when they are asked for, but for the bad ones. */
const few = 24;

/** As ttmon topo --links has them. */
export function LinkTable(p: { top: Topology | null; mesh: Mesh | null }) {
  const [all, setAll] = useState(false);
  const rows = rowsOf(p.top, p.mesh).sort((a, b) => worst(b) - worst(a));
  if (rows.length === 0) return null;
  const bad = rows.filter((r) => worst(r) > 0);
  const list = all || rows.length <= few ? rows : bad.slice(0, 200);
  const has = (of: (c: Channel) => number | null) => rows.some((r) => of(r.channel) !== null);
  const counted = has((c) => c.retrains) || has((c) => c.corrected_codewords) || has((c) => c.uncorrected_codewords);
  const traffic = has((c) => c.a_to_b_bytes_per_s) || has((c) => c.b_to_a_bytes_per_s);
  const toggle = rows.length > few && (
    <button aria-pressed={all} onClick={() => setAll(!all)}>
      {all ? "only those in trouble" : `all ${rows.length}`}
    </button>
  );
  return (
    <Panel title={`Ethernet links (${rows.length})`} tools={toggle} id="links">
      {list.length > 0 && <Rows list={list} traffic={traffic} />}
      <p class="empty">
        {list.length === 0 && "None is down, none has trained again. "}
        {!counted && "Retrains and codewords are not known: ttmond --firmware full reads them while a program of tt-metal has the device open. "}
        {!traffic && "Traffic is not known: ttmon-server takes it from tt-telemetry, where that runs."}
      </p>
    </Panel>
  );
}

function Rows(p: { list: Row[]; traffic: boolean }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Ethernet links">
      <table class="linktable">
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col" class="num">Channel</th>
            <th scope="col">To</th>
            <th scope="col" class="num">Channel</th>
            <th scope="col">State</th>
            <th scope="col" class="num">Retrains</th>
            <th scope="col" class="num">Corrected</th>
            <th scope="col" class="num">Uncorrected</th>
            {p.traffic && <th scope="col" class="num">From → to</th>}
            {p.traffic && <th scope="col" class="num">To → from</th>}
          </tr>
        </thead>
        <tbody>
          {p.list.map((r) => (
            <LinkRow key={r.key} of={r} traffic={p.traffic} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LinkRow(p: { of: Row; traffic: boolean }) {
  const { from, to, far, channel: c } = p.of;
  const state = states[String(c.up)]!;
  const count = (n: number | null, bound?: Bound) => (n === null ? "–" : mark(bound) + n);
  const rate = (n: number | null) => (n === null ? "–" : bytes(n) + "/s");
  return (
    <tr>
      <td>{from}</td>
      <td class="num">{c.a}</td>
      <td>{to}</td>
      <td class="num">{far}</td>
      <td class={state.level === "info" ? "muted" : health(state.level)}>
        {state.word}
        {c.up_before_reset && ", up before the reset"}
      </td>
      <td class={"num" + (c.retrains ? " warn" : "")}>{count(c.retrains)}</td>
      <td class="num">{count(c.corrected_codewords, c.codewords_bound)}</td>
      <td class="num">{count(c.uncorrected_codewords, c.codewords_bound)}</td>
      {p.traffic && <td class="num">{rate(c.a_to_b_bytes_per_s)}</td>}
      {p.traffic && <td class="num">{rate(c.b_to_a_bytes_per_s)}</td>}
    </tr>
  );
}
