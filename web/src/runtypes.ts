// Runs as the API has them: ttmon.runs/1 and ttmon.compare/1.

import type { SheetRow } from "./answers";

export interface RunDevice {
  index: number;
  bus_id?: string;
}

export interface Run {
  id: number;
  uid: number;
  user?: string;
  command?: string;
  job?: { kind: string; id: string };
  start: string;
  first_seen: string;
  last_seen: string;
  end: { kind: string; at?: string; text: string };
  processes: { pid: number; start_ticks: number; name: string }[];
  devices: RunDevice[];
  left: { pid: number; region: string; text: string }[];
  row: SheetRow; // of the table that the answer has of all of them
}

export interface Comparison {
  a: { name: string; runs: string[]; start: string };
  b: { name: string; runs: string[]; start: string };
  text: string;
  figures: { name: string; title: string; device: number | null; board?: string; text_a: string; text_b: string; change: string }[];
}
