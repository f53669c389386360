// One device: what it is, how it does, how it did.

import { Bar, Empty, Panel, Reasons, StateOf } from "./parts";
import { EventList } from "./events";
import { missing } from "./figures";
import { MetricChart, useEvents, useRangeData } from "./metricchart";
import { ProcessTable } from "./processtable";
import { RangeChoice, useRange } from "./range";
import { setQuery, useRoute } from "./route";
import type { State } from "./store";
import type { Device, PoolUse, SaidDevice } from "./types";

const standard: { metrics: string[]; title: string; limit?: (d: Device) => number | null; zero?: boolean }[] = [
  { metrics: ["temperature.asic"], title: "Temperature", limit: (d) => d.temperature_limit_c, zero: true },
  { metrics: ["power.draw"], title: "Power", limit: (d) => d.power_limit_w, zero: true },
  { metrics: ["memory.used"], title: "DRAM in use", limit: (d) => totalMiB(d), zero: true },
  { metrics: ["clocks.ai"], title: "AI clock", limit: (d) => d.aiclk_max_mhz },
  { metrics: ["pcie.rx", "pcie.tx"], title: "PCIe" },
  { metrics: ["l1.used"], title: "L1 that buffers asked for" },
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
        <StateOf state={said.state} />
        {said.reason && <span class="why">{said.reason}</span>}
      </div>
      <div class="two">
        <Facts d={d} s={said} />
        <Memory d={d} s={said} />
      </div>
      <Charts s={p.s} d={d} />
      <Panel title="Processes on it">
        <ProcessTable snap={snap} said={p.s.said!} brief device={d.index} />
      </Panel>
    </>
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
        <Fact name="To, from the device" value={`${s.to_device}, ${s.from_device}`} />
        <Fact name="Heartbeat" value={d.heartbeat_hz === null ? null : d.heartbeat_hz.toFixed(1) + " Hz"} why={why("heartbeat_hz") ?? why("heartbeat")} />
        <Fact name="Thermal trips" value={d.thermal_trips} why={why("thermal_trips")} />
        {Object.entries(d.firmware).map(([k, v]) => (
          <Fact key={k} name={"Firmware: " + k.replace("_", " ")} value={v} why={why("firmware." + k)} />
        ))}
      </dl>
    </Panel>
  );
}

const shownPools = ["dram", "l1", "l1_small", "trace", "cb", "kernel"];

function Memory(p: { d: Device; s: SaidDevice }) {
  const { d, s } = p;
  const rows = s.chips.length > 1 ? s.chips : [];
  return (
    <Panel title="Memory">
      <div class="body chipmem">
        <PoolList pools={s.pools} />
        {rows.map((c, i) => (
          <div key={i} class="chip">
            <h3>
              chip {c.name || i} <span class="muted">{d.chips[i]?.id ?? ""}</span>
            </h3>
            <PoolList pools={c.pools} />
          </div>
        ))}
        {s.stale && <p class="why">{s.stale} belong to dead processes.</p>}
      </div>
      <Reasons list={[...new Set([...s.reasons, ...s.chips.flatMap((c) => c.reasons)])]} />
    </Panel>
  );
}

function PoolList(p: { pools: SaidDevice["pools"] }) {
  return (
    <dl class="pools wide">
      {shownPools.map((k) => (
        <div key={k}>
          <dt>{k.toUpperCase().replace("_", " ")}</dt>
          <dd>
            <Bar figure={p.pools[k]!} label={k} />
            <span class="num">{p.pools[k]!.text}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Charts(p: { s: State; d: Device }) {
  const range = useRange();
  const route = useRoute();
  const extra = (route.query.get("metric") ?? "").split(",").filter((m) => p.s.metrics.some((x) => x.name === m));
  const all = [...new Set([...standard.flatMap((c) => c.metrics)])].filter((m) => p.s.metrics.length === 0 || p.s.metrics.some((x) => x.name === m));
  const { answer, problem } = useRangeData(all, p.d.bus_id, range);
  const more = useRangeData(extra, p.d.bus_id, range);
  const events = useEvents(range, p.d.bus_id);
  const others = p.s.metrics.filter((m) => !all.includes(m.name) && !extra.includes(m.name));
  const help = (name: string) => p.s.metrics.find((m) => m.name === name)?.help;
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
      <div class="charts">
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
      <EventList events={events.slice(-50).reverse()} />
    </Panel>
  );
}

const names: Record<string, string> = { "pcie.rx": "to device", "pcie.tx": "from device", "temperature.asic": "ASIC", "power.draw": "core", "memory.used": "DRAM", "clocks.ai": "AI clock", "l1.used": "L1" };
