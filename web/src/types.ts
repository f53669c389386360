// What the API answers, as far as the page uses it. /api/v1/openapi.json
// describes all of it.

export type Bound = "exact" | "at_least" | "unsure";

export interface Figure {
  text: string;
  bytes: number | null;
  bound?: Bound;
  ratio: number | null;
}

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

export interface Notice {
  level: "critical" | "warning" | "info";
  code: string;
  devices: number[];
  text: string;
}

/** All that is wrong with a device, or with several in the same way. */
export interface Trouble {
  level: Level;
  kind: string;
  devices: number[];
  name: string;
  board: string;
  what: string;
  held: string;
  since: string | null;
  facts: string;
  affected: string;
  remedy: string;
  alerts: string[];
}

export type Level = "ok" | "info" | "warning" | "critical";

/** A field of a device, as the table of fields writes it. */
export interface Value {
  text: string;
  of: string;
  ratio: number | null;
  level?: Level;
  why?: string;
}

/** All that is known of a device. */
export interface Facts {
  sections: { title: string; facts: { name: string; title: string; known: boolean; text: string; limit: number | null; level?: Level }[] }[];
}

export interface SaidDevice {
  name: string;
  state: string;
  mark: string;
  kind: string;
  level: Level;
  reason: string;
  /** By name of the field. */
  values: Record<string, Value>;
  pools: Pools;
  stale: string;
  reasons: string[];
  chips: { name: string; pools: Pools; stale: string; reasons: string[] }[];
}

/** The share of the time in which programs of a process ran on a chip. */
/** A value of a process, as the table of fields writes it. */
export interface Cell {
  text: string;
  n: number | null; // to sort by; null: a text, or not known
  bound?: Bound; // not given where it is exact
  why?: string;
}

export type Cells = Record<string, Cell>;

export interface SaidProcess {
  values: Cells;
  reach: string;
  uses: { values: Cells; source: string; reasons: string[] }[];
}

/** The text of a process in a column. */
export const told = (p: SaidProcess | undefined, column: string): string => p?.values[column]?.text ?? "–";

/** A column of the table of processes. */
export interface Column {
  name: string;
  head: string;
  help: string;
  right: boolean;
  rank: number; // when room is short the greatest goes first; 0: only where there is something to show
}

export interface Said {
  time: string;
  troubles: Trouble[];
  trouble: string;
  notes: Notice[];
  totals: {
    devices: number;
    chips: number;
    states: { kind: string; text: string; level: Level; n: number }[];
    power: string;
    hottest: string;
    dram: Figure;
  };
  devices: SaidDevice[];
  processes: SaidProcess[];
}

export interface Words {
  fields: Record<string, { head?: string; title: string }>;
  processes: Column[];
  nothing: string;
  marks: Record<Bound, string>;
  missing: Record<string, string>;
  pools: Record<string, string>;
  sources: Record<string, string>;
  simulated: string;
}

export interface Metric {
  name: string;
  unit: string;
  decimals: number;
  kind: string;
  rate: boolean;
  help: string;
}

export interface RangeSeries {
  metric: string;
  unit: string;
  device: number | null;
  bus_id: string;
  values: (number | null)[];
  bounds?: (number | null)[];
}

export interface RangeAnswer {
  start: string;
  end: string;
  step_s: number;
  times: number[];
  away?: boolean[]; // no sample
  series: RangeSeries[];
}

export interface Event {
  seq: number;
  time: string;
  kind: string;
  level: string;
  devices?: string[];
  pid?: number; // the process it is about
  short?: string;
  text: string;
  failure?: string; // of /v1/failures
  values?: Record<string, Record<string, number>>;
}

export interface Me {
  user: string | null;
  sees: string;
  text: string;
}
