// Ethernet links, a row each: their state, and what their ends have counted.

import { useState } from "preact/hooks";
import { Panel } from "./parts";
import { Table } from "./sheet";
import type { SheetRow, SheetTable } from "./answers";

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

/** More links than this are shown only when they are asked for, but for the bad ones. */
const few = 24;

const bad = (r: SheetRow): boolean => r.cells.some((c) => c.level);

/** As ttmon topo --links has them. */
export function LinkTable(p: { of: SheetTable | null | undefined }) {
  const [all, setAll] = useState(false);
  const t = p.of;
  if (!t || t.rows.length === 0) return null;
  const list = all || t.rows.length <= few ? t.rows : t.rows.filter(bad).slice(0, 200);
  const known = (column: string) => t.rows.some((r) => !r.cells[t.columns.findIndex((c) => c.name === column)]?.gone);
  const toggle = t.rows.length > few && (
    <button aria-pressed={all} onClick={() => setAll(!all)}>
      {all ? "only those in trouble" : `all ${t.rows.length}`}
    </button>
  );
  return (
    <Panel title={`Ethernet links (${t.rows.length})`} tools={toggle} id="links">
      {list.length > 0 && <Table of={{ ...t, rows: list }} label="Ethernet links" class="linktable" />}
      <p class="empty">
        {list.length === 0 && "None is down, none has trained again. "}
        {!known("retrains") && !known("corrected") && "Retrains and codewords are not known: ttmond --firmware full reads them while a program of tt-metal has the device open. "}
        {!t.columns.some((c) => c.name === "from_to") && "Traffic is not known: ttmon-server takes it from tt-telemetry, where that runs."}
      </p>
    </Panel>
  );
}
