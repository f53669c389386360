// Runs as the API has them: ttmon.runs/1 and ttmon.compare/1.

import type { Bound } from "./answers";

export interface RunPool {
  peak_bytes: number;
  peak_bound: Bound;
  peak_at: string;
  mean_bytes: number;
  mean_bound: Bound;
  known_s: number;
  mean_text?: string;
}

export interface RunDevice {
  index: number;
  bus_id?: string;
  board?: string;
  open_s: number;
  shared_s?: number;
  memory: Record<string, RunPool>;
  chips?: { id: string; name?: string; memory: Record<string, RunPool> }[];
  said: { open: string; power: string; power_max: string; energy: string; hottest: string; pcie_to: string; pcie_from: string; trouble: string; aiclk: string; busy: string };
}

export interface Run {
  id: number;
  uid: number;
  user?: string;
  command?: string;
  host?: string;
  release?: string;
  job?: { kind: string; id: string };
  start: string;
  first_seen: string;
  last_seen: string;
  end: { kind: string; at?: string; text: string };
  failed: boolean;
  unseen_s?: number;
  allocation_failures?: { count: number; failure?: string };
  more_neighbours?: boolean;
  processes: { pid: number; start_ticks: number; name: string }[];
  memory: Record<string, RunPool>;
  devices: RunDevice[];
  neighbours: { id: number; user?: string; name?: string; devices: number[]; seconds: number }[];
  left: { pid: number; region: string; text: string }[];
  said: { took: string; user: string; reach: string; job: string; devices: string; peak_dram: string; energy: string; activity: string; busy?: string; command: string; failures?: string } & SaidOfOne;
}

/** What only an answer for one run has. */
export interface SaidOfOne {
  operations?: { operation: string; time: string; calls: string; mean: string }[];
  gaps?: { length: string; device: string; ended_after: string; after: string }[];
  gap_notes?: string[];
  lines?: { line: string; pool: string; at_peak: string; allocations: string }[];
  lines_note?: string;
}

export interface Comparison {
  a: { name: string; runs: string[]; start: string };
  b: { name: string; runs: string[]; start: string };
  text: string;
  figures: { name: string; title: string; device: number | null; board?: string; text_a: string; text_b: string; change: string }[];
}
