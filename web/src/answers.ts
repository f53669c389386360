// What the API answers, as far as the page reads it. Made from the Go types that are
// sent (internal/node/api, TestPageTypes; make update): change those.

export type Bound = "exact" | "at_least" | "unsure";

export type Level = "ok" | "info" | "warning" | "critical";

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

export interface Notice {
  level: Level;
  code: string;
  devices: number[];
  text: string;
}

export interface Count {
  kind: string;
  text: string;
  level: Level;
  n: number;
}

export interface Figure {
  text: string;
  bytes: number | null;
  bound?: Bound;
  ratio: number | null;
}

export interface Totals {
  devices: number;
  chips: number;
  states: Count[];
  power: string;
  hottest: string;
  dram: Figure;
}

export interface Value {
  text: string;
  of: string;
  ratio: number | null;
  level?: Level;
  why?: string;
}

export interface SaidChip {
  name: string;
  pools: Record<string, Figure>;
  stale: string;
  reasons: string[];
}

export interface SaidDevice {
  name: string;
  state: string;
  mark: string;
  kind: string;
  level: Level;
  reason: string;
  values: Record<string, Value>;
  busy: string;
  pools: Record<string, Figure>;
  stale: string;
  reasons: string[];
  chips: SaidChip[];
}

export interface Cell {
  text: string;
  n: number | null;
  bound?: Bound;
  why?: string;
}

export interface SaidUse {
  values: Record<string, Cell>;
  source: string;
  reasons: string[];
}

export interface SaidProcess {
  values: Record<string, Cell>;
  reach: string;
  uses: SaidUse[];
}

export interface Fact {
  text: string;
  n: number | null;
  level?: Level;
  gone?: boolean;
  why?: string;
  note?: string;
  time?: string | null;
  link?: string;
}

export interface Operation {
  pid: number;
  device: number | null;
  cells: Fact[];
}

export interface Said {
  time: string;
  troubles: Trouble[];
  trouble: string;
  notes: Notice[];
  notices: Notice[];
  totals: Totals;
  devices: SaidDevice[];
  processes: SaidProcess[];
  operations: Operation[];
}

export interface Column {
  name: string;
  head: string;
  help: string;
  right: boolean;
  rank: number;
}

export interface MeshEnd {
  device: number;
  chip: string;
}

export interface Channel {
  a: number;
  b: number;
  up: boolean | null;
  up_before_reset: boolean;
  retrains: number | null;
  corrected_codewords: number | null;
  uncorrected_codewords: number | null;
  codewords_bound: Bound;
  a_to_b_bytes_per_s: number | null;
  b_to_a_bytes_per_s: number | null;
}

export interface MeshLink {
  a: MeshEnd;
  b: MeshEnd | null;
  up: number;
  all: number;
  level: Level;
  name: string;
  text: string;
  figures: string;
  channels: Channel[];
}

export interface Mesh {
  text: string;
  level: Level;
  expected: number;
  up: number;
  links: MeshLink[];
  cut_off: MeshEnd[];
  lost: string;
  table: SheetTable;
}

export interface Pair {
  name: string;
  value: Fact;
  field?: string;
  limit?: number | null;
}

export interface Note {
  code?: string;
  level?: Level;
  text: string;
}

export interface SheetColumn {
  name: string;
  head: string;
  help?: string;
  right?: boolean;
  rank?: number;
  bar?: boolean;
}

export interface SheetRow {
  color?: number;
  cells: Fact[];
}

export interface SheetTable {
  columns: SheetColumn[];
  rows: SheetRow[];
  more?: string;
}

export interface Piece {
  at: number;
  size: number;
  label: string;
}

export interface SheetMap {
  base: number;
  size: number;
  cut: number;
  exact: boolean;
  spans: [number, number, number, number][];
  left_out: number;
  names: string[];
  piece: Piece | null;
  end: string;
}

export interface SheetPart {
  title: string;
  folded?: boolean;
  below?: boolean;
  pairs?: Pair[];
  table?: SheetTable | null;
  map?: SheetMap | null;
  notes?: Note[];
}

export interface Sheet {
  title: string;
  status: Note | null;
  parts: SheetPart[];
}

export interface Failure {
  id: string;
  sheet: Sheet;
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
  away?: boolean[];
  series: RangeSeries[];
}

export interface EventOrigin {
  log: string;
  seq: number;
}

export interface Event {
  seq: number;
  time: string;
  kind: string;
  level: Level;
  devices?: string[];
  short?: string;
  text: string;
  process?: boolean;
  pid?: number;
  values?: Record<string, Record<string, number>>;
  bounds?: Record<string, Record<string, string>>;
  volatile?: boolean;
  failure?: string;
  from?: EventOrigin | null;
}

export interface Metric {
  name: string;
  unit: string;
  decimals: number;
  kind: string;
  rate: boolean;
  help: string;
}

export interface Me {
  uid: number | null;
  user: string | null;
  sees: string;
  hiding: number;
  text: string;
}

export interface MapHolderSite {
  site: number;
  tensor?: string;
}

export interface MapHolder {
  number: number;
  line: string;
  other_lines: number;
  bank_bytes: number;
  bytes: number;
  blocks: number;
  oldest_ms: number;
  grew: boolean;
  sites: MapHolderSite[];
}

export interface MapPool {
  pool: string;
  what: string;
  state: string;
  exact: boolean;
  chips: string[];
  base_address: number;
  bank_capacity: number;
  bank_cut_bytes: number;
  banks: number;
  peak: string;
  blocks: [number, number, number, number, number][];
  left_out: number;
  holders: MapHolder[];
}

export interface Site {
  pool: string;
  chip: string;
  tag?: string;
  where?: string;
  holder?: string;
  stack: string[];
  own: string[];
  bytes: number;
  blocks: number;
}

export interface MapAnswer {
  pid: number;
  pools: MapPool[];
  doubts: string[];
  fits: string[];
  sites: Site[];
}
