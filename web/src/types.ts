// A snapshot, ttmon.snapshot/1, as far as the page reads it: docs/snapshot.schema.json
// describes all of it. Other answers are in answers.ts.

import type { Bound, Cell, Column, SheetColumn, Figure, SaidProcess } from "./answers";

export type Pools = Record<string, Figure>;

export interface PoolUse {
  used_bytes: number | null;
  used_bound: Bound | null;
  total_bytes: number | null;
  occupied_bytes?: number | null;
  free_bytes?: number | null;
  largest_free_bytes?: number | null;
}

export interface Chip {
  id: string | null;
  name: string | null;
  remote: boolean;
  // Of a chip behind Ethernet, where tt-telemetry is asked.
  remote_temperature_c?: number | null;
  remote_power_w?: number | null;
  sensors_from?: string;
  missing?: Record<string, string>;
  memory: { tracking: string; [pool: string]: PoolUse | unknown };
}

export interface Device {
  index: number;
  path: string;
  bus_id: string;
  arch: string;
  board: string | null;
  serial: string | null;
  asic_id: string | null;
  numa_node: number | null;
  cpu_affinity: string | null;
  tray: number | null;
  slot: number | null;
  state: string;
  state_reason: string;
  read_at: string;
  temperature_c: number | null;
  temperature_limit_c: number | null;
  power_w: number | null;
  power_limit_w: number | null;
  activity: { ratio: number | null; basis: string };
  pcie: Record<string, number | boolean | null>;
  firmware: Record<string, string | null>;
  cores: number | null;
  chips: Chip[];
  memory: { tracking: string; [pool: string]: PoolUse | unknown };
  missing: Record<string, string>;
  nominal: string[];
}

export interface DeviceUse {
  index: number | null;
  open_fds: number | null;
  source: string;
  bound: Bound | null;
  chips: { id: string; dram_bytes: number | null }[];
}

export interface Process {
  pid: number;
  start_time: string | null;
  start_ticks: number;
  ppid: number;
  state: string;
  uid: number | null;
  user: string | null;
  name: string | null;
  cmdline: string | null;
  cpu_percent: number | null;
  rss_bytes: number | null;
  threads: number | null;
  container?: object | null;
  slurm_job?: string | null;
  systemd_unit?: string | null;
  release: string | null;
  devices: DeviceUse[];
  work?: { chips: ChipWork[] };
}

/** What a process had a chip do; times are of its own programs. */
export interface ChipWork {
  index: number | null;
  chip?: string;
  chip_id: string;
  busy_ratio: number | null;
  busy_bound?: string;
  cause?: string;
  late_ratio: number | null;
  operations: Operation[];
  gaps?: Gap[];
  gaps_cause?: string;
}

/** A time between two programs of a process on a chip. */
export interface Gap {
  length_ns: number;
  end: string | null;
  after?: string;
}

export interface Operation {
  name: string;
  others?: number;
  calls: number;
  time_ns: number;
  longest_ns: number;
  share_ratio: number | null;
  calls_per_s: number | null;
}

export interface Ghost {
  index: number | null;
  pid: number;
  name: string;
  dram_bytes: number | null;
  dram_bound: Bound | null;
  l1_bytes: number | null;
  updated: string | null;
}

export interface Alert {
  name: string;
  severity: string;
  summary: string;
  bus_id: string;
  since: string;
  silenced: boolean;
}

export interface Snapshot {
  time: string;
  simulated: boolean;
  host: { name: string; kernel: string; driver_version: string | null; unbound: string[] };
  devices: Device[];
  processes: Process[];
  ghosts: Ghost[];
  alerts: Alert[];
}

export type Cells = Record<string, Cell>;

/** The text of a process in a column. */
export const told = (p: SaidProcess | undefined, column: string): string => p?.values[column]?.text ?? "–";

export interface Words {
  fields: Record<string, { head?: string; title: string }>;
  processes: Column[];
  operations: SheetColumn[];
  nothing: string;
  no_line: string;
  marks: Record<Bound, string>;
  missing: Record<string, string>;
  pools: Record<string, string>;
  sources: Record<string, string>;
  simulated: string;
}

