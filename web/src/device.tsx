// One device: what it is, how it does, how it did.

import { A, Bar, Empty, Panel, poolNames, Reasons, StateOf } from "./parts";
import { EventList } from "./events";
import { bytes, mark, missing } from "./figures";
import { MetricChart, useEvents, useRangeData } from "./metricchart";
import { ProcessTable } from "./processtable";
import { RangeChoice, useRange } from "./range";
import { setQuery, useRoute } from "./route";
import { offers, type State } from "./store";
import type { Device, Figure, PoolUse, SaidDevice } from "./types";

const standard: { metrics: string[]; title: string; limit?: (d: Device) => number | null; zero?: boolean }[] = [
  { metrics: ["temperature.asic"], title: "Temperature", limit: (d) => d.temperature_limit_c, zero: true },
  { metrics: ["power.draw"], title: "Power", limit: (d) => d.power_limit_w, zero: true },
  { metrics: ["memory.used"], title: "DRAM in use", limit: (d) => totalMiB(d), zero: true },
  { metrics: ["clocks.ai"], title: "AI clock", limit: (d) => d.aiclk_max_mhz, zero: true },
  { metrics: ["pcie.rx", "pcie.tx"], title: "PCIe", zero: true },
  { metrics: ["l1.used"], title: "L1 that buffers asked for", zero: true },
];

function totalMiB(d: Device): number | null {
  const n = (d.memory["dram"] as PoolUse | undefined)?.total_bytes ?? null;
  return n === null ? null : n / 2 ** 20;
}

export function DevicePage(p: { s: State; name: string }) {
  const snap = p.s.snap!;
  const i = snap.devices.findIndex((d) => d.bus_id === p.name || String(d.index) === p.name);
  const d = snap.devices[i];
  const said = p.s.said?.devices[i];
  if (!d || !said) return <Empty>There is no device {p.name} here at this moment.</Empty>;
  return (
    <>
      <div class="title">
        <h2>
          device {d.index} · {said.name}
        </h2>
        <span class="bus">{d.bus_id}</span>
        <StateOf of={said} />
        {said.reason && <span class="why">{said.reason}</span>}
        <Neighbours devices={snap.devices} at={i} />
      </div>
      <Vitals d={d} s={said} />
      <div class="two">
        <Memory d={d} s={said} />
        <Panel title="Processes on it">
          <ProcessTable snap={snap} said={p.s.said!} brief device={d.index} />
        </Panel>
      </div>
      <Charts s={p.s} d={d} />
      <Facts d={d} s={said} />
    </>
  );
}

/** The way to the device before and after. */
function Neighbours(p: { devices: Device[]; at: number }) {
  const before = p.devices[p.at - 1];
  const after = p.devices[p.at + 1];
  return (
    <nav class="neighbours" aria-label="Other devices">
      {before && <A to={"/device/" + before.bus_id}>‹ device {before.index}</A>}
      {after && <A to={"/device/" + after.bus_id}>device {after.index} ›</A>}
    </nav>
  );
}

/** How it does, in a row: each value with its limit. */
function Vitals(p: { d: Device; s: SaidDevice }) {
  const { d, s } = p;
  const of = (v: number | null, limit: number | null) => (v === null || !limit ? null : v / limit);
  const list: { name: string; level?: string; text: string; note?: string; ratio: number | null; extra?: string; why?: string }[] = [
    { name: "Temperature", level: s.levels.temperature, text: s.temperature, note: d.temperature_limit_c === null ? "" : `limit ${d.temperature_limit_c} °C`, ratio: of(d.temperature_c, d.temperature_limit_c), why: d.missing["temperature_c"] },
    { name: "Power", level: s.levels.power, text: s.power, ratio: of(d.power_w, d.power_limit_w), why: d.missing["power_w"] },
    { name: "AI clock", level: s.levels.clock, text: s.clock, note: d.aiclk_max_mhz === null ? "" : `up to ${d.aiclk_max_mhz} MHz`, ratio: of(d.aiclk_mhz, d.aiclk_max_mhz), why: d.missing["aiclk_mhz"] },
    { name: "Activity", text: s.activity, note: "estimate", ratio: d.activity.ratio, why: d.missing["activity.ratio"] ?? d.missing["activity"] },
    { name: "DRAM", text: s.pools["dram"]!.text, ratio: s.pools["dram"]!.ratio },
    { name: "PCIe", text: s.to_device, note: `to it, ${s.link}`, ratio: null, extra: `${s.from_device} from it` },
  ];
  return (
    <dl class="vitalrow">
      {list.map((x) => (
        <div key={x.name} title={missing(x.why).reason || undefined}>
          <dt>
            {x.name} <span class="note">{x.note}</span>
          </dt>
          <dd class={x.level ?? ""}>{x.text}</dd>
          {x.extra ? (
            <dd class="extra">{x.extra}</dd>
          ) : (
            <span class="bar" aria-hidden="true">
              {x.ratio !== null && <span class="fill" style={{ width: Math.min(100, x.ratio * 100).toFixed(1) + "%" }} />}
            </span>
          )}
        </div>
      ))}
    </dl>
  );
}

/** A row of a table of facts: a value, or why there is none. */
function Fact(p: { name: string; value: string | number | null | undefined; unit?: string; of?: number | null; why?: string }) {
  const gone = p.value === null || p.value === undefined || p.value === "";
  const m = missing(p.why);
  return (
    <div>
      <dt>{p.name}</dt>
      <dd title={gone ? m.reason : undefined} class={gone ? "gone" : ""}>
        {gone ? m.word : `${p.value}${p.of !== undefined && p.of !== null ? " / " + p.of : ""}${p.unit ? " " + p.unit : ""}`}
      </dd>
    </div>
  );
}

const fixed = (v: number | null, n: number) => (v === null ? null : v.toFixed(n));

function Facts(p: { d: Device; s: SaidDevice }) {
  const { d, s } = p;
  const why = (key: string) => d.missing[key];
  return (
    <Panel title="What it is">
      <dl class="facts">
        <Fact name="Board" value={d.board} why={why("board")} />
        <Fact name="Chip" value={d.arch} />
        <Fact name="Serial number" value={d.serial} why={why("serial")} />
        <Fact name="ASIC id" value={d.asic_id} why={why("asic_id")} />
        <Fact name="Node" value={d.path} />
        {d.tray !== null && <Fact name="Tray, slot" value={`${d.tray}, ${d.slot ?? "–"}`} />}
        <Fact name="NUMA node, CPUs" value={d.numa_node === null ? null : `${d.numa_node}, ${d.cpu_affinity ?? "–"}`} why={why("numa_node")} />
        <Fact name="Temperature" value={fixed(d.temperature_c, 1)} of={d.temperature_limit_c} unit="°C" why={why("temperature_c")} />
        <Fact name="Power" value={fixed(d.power_w, 0)} of={d.power_limit_w} unit="W" why={why("power_w")} />
        <Fact name="Core voltage" value={fixed(d.voltage_v, 3)} of={d.voltage_limit_v} unit="V" why={why("voltage_v")} />
        <Fact name="Core current" value={fixed(d.current_a, 0)} of={d.current_limit_a} unit="A" why={why("current_a")} />
        <Fact name="AI clock" value={fixed(d.aiclk_mhz, 0)} of={d.aiclk_max_mhz} unit="MHz" why={why("aiclk_mhz")} />
        <Fact name="Fan" value={fixed(d.fan_rpm, 0)} unit="rpm" why={why("fan_rpm")} />
        <Fact name="Activity" value={d.activity.ratio === null ? null : s.activity} why={d.activity.ratio === null ? (why("activity.ratio") ?? why("activity")) : undefined} />
        <Fact name="PCIe link" value={s.link} why={why("pcie.gen")} />
        <Fact name="To the device" value={s.to_device} />
        <Fact name="From the device" value={s.from_device} />
        <Fact name="Heartbeat" value={d.heartbeat_hz === null ? null : d.heartbeat_hz.toFixed(1) + " Hz"} why={why("heartbeat_hz") ?? why("heartbeat")} />
        <Fact name="Thermal trips" value={d.thermal_trips} why={why("thermal_trips")} />
        {Object.entries(d.firmware).map(([k, v]) => (
          <Fact key={k} name={"Firmware " + k.replace("_", " ")} value={v} why={why("firmware." + k)} />
        ))}
      </dl>
    </Panel>
  );
}

const shownPools = ["dram", "l1", "l1_small", "trace", "cb", "kernel"];

/** Pools whose size is known as bars, the others as figures; chip by chip where there are several. */
function Memory(p: { d: Device; s: SaidDevice }) {
  const { d, s } = p;
  const chips = s.chips.length > 1 ? s.chips : [];
  const sized = shownPools.filter((k) => s.pools[k]!.ratio !== null);
  const others = shownPools.filter((k) => s.pools[k]!.ratio === null);
  return (
    <Panel title="Memory">
      {sized.length > 0 && (
        <dl class="pools wide body">
          {sized.flatMap((k) => [
            <Pool key={k} name={poolName(k)} figure={s.pools[k]!} />,
            ...chips.map((c, i) => <Pool key={k + i} name={`chip ${c.name || i}`} figure={c.pools[k]!} part />),
          ])}
        </dl>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label="Memory by pool">
        <table class="pooltable">
          <thead>
            <tr>
              <th>Pool</th>
              <th class="num">{chips.length > 0 ? "Device" : "In use"}</th>
              {chips.map((c, i) => (
                <th key={i} class="num" title={d.chips[i]?.id ?? undefined}>
                  Chip {c.name || i}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {others.map((k) => (
              <tr key={k}>
                <td>{poolName(k)}</td>
                {[s, ...chips].map((x, i) => (
                  <td key={i} class="num">
                    {x.pools[k]!.bytes === null ? x.pools[k]!.text : mark(x.pools[k]!.bound) + bytes(x.pools[k]!.bytes!)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {s.stale && <p class="why body">{s.stale} belong to dead processes.</p>}
      <Reasons list={[...new Set([...s.reasons, ...s.chips.flatMap((c) => c.reasons)])]} />
    </Panel>
  );
}

const poolName = (k: string): string => (k === "l1" ? "L1, buffers only" : poolNames[k]!);

function Pool(p: { name: string; figure: Figure; part?: boolean }) {
  return (
    <div class={p.part ? "part" : ""}>
      <dt>{p.part ? "└ " + p.name : p.name}</dt>
      <dd>
        <Bar figure={p.figure} label={p.name} />
        <span class="num">{p.figure.text}</span>
      </dd>
    </div>
  );
}

function Charts(p: { s: State; d: Device }) {
  const range = useRange();
  const route = useRoute();
  const extra = (route.query.get("metric") ?? "").split(",").filter((m) => p.s.metrics.some((x) => x.name === m));
  const all = [...new Set([...standard.flatMap((c) => c.metrics)])].filter((m) => p.s.metrics.length === 0 || p.s.metrics.some((x) => x.name === m));
  const { answer, problem } = useRangeData(all, p.d.bus_id, range);
  const more = useRangeData(extra, p.d.bus_id, range);
  const { events, problem: unknown } = useEvents(range, p.d.bus_id);
  const others = p.s.metrics.filter((m) => !all.includes(m.name) && !extra.includes(m.name));
  const help = (name: string) => p.s.metrics.find((m) => m.name === name)?.help;
  if (!offers("/v1/range")) return null;
  return (
    <Panel
      title="Over time"
      tools={
        <>
          <label class="choice">
            <span>add</span>
            <select value="" onChange={(e) => setQuery({ metric: [...extra, e.currentTarget.value].join(",") })}>
              <option value="">a metric …</option>
              {others.map((m) => (
                <option key={m.name} value={m.name}>
                  {m.name}: {m.help}
                </option>
              ))}
            </select>
          </label>
          <RangeChoice range={range} />
        </>
      }
    >
      <div class="charts three">
        {standard.map((c) => (
          <MetricChart key={c.title} metrics={c.metrics} title={c.title} help={help(c.metrics[0]!)} answer={answer} problem={problem} range={range} events={events} limit={c.limit?.(p.d)} zero={c.zero} nameOf={(m) => names[m] ?? m} />
        ))}
        {extra.map((m) => (
          <div key={m} class="removable">
            <MetricChart metrics={[m]} title={m} help={help(m)} answer={more.answer} problem={more.problem} range={range} events={events} nameOf={(x) => x} />
            <button class="remove" aria-label={"remove " + m} onClick={() => setQuery({ metric: extra.filter((x) => x !== m).join(",") })}>
              ✕
            </button>
          </div>
        ))}
      </div>
      <EventList events={events.slice(-50).reverse()} problem={unknown} />
    </Panel>
  );
}

const names: Record<string, string> = { "pcie.rx": "to device", "pcie.tx": "from device", "temperature.asic": "ASIC", "power.draw": "core", "memory.used": "DRAM", "clocks.ai": "AI clock", "l1.used": "L1" };
