// One device: what it is, how it does, how it did.

import { A, Bar, Empty, Panel, poolNames, Reasons, StateOf } from "./parts";
import { EventList } from "./events";
import { bytes, field, mark, sensorsOf, title } from "./figures";
import { AllFacts, useFacts } from "./facts";
import { Operations } from "./operations";
import { MetricChart, ofDevices, useEvents, useRangeData } from "./metricchart";
import { ProcessTable } from "./processtable";
import { WhatChanged } from "./changed";
import { RangeChoice, useRange } from "./range";
import { setQuery, useRoute } from "./route";
import { offers, type State } from "./store";
import type { Figure, SaidDevice, Sheet, Value } from "./answers";
import type { Chip, Device } from "./types";

/** Charts that every device has: a field each, or several of one kind. */
const standard = (s: SaidDevice): string[][] => [["temperature.asic"], ["power.draw"], ["memory.used"], ["clocks.ai"], ["pcie.rx", "pcie.tx"], ["l1.used"], [s.busy]];

export function DevicePage(p: { s: State; name: string }) {
  const snap = p.s.snap!;
  const i = snap.devices.findIndex((d) => d.bus_id === p.name || String(d.index) === p.name);
  const d = snap.devices[i];
  const said = p.s.said?.devices[i];
  const facts = useFacts(p.s, d && { device: d.bus_id });
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
          <Ask s={p.s} device={d.index} />
        </Panel>
      </div>
      <Operations said={p.s.said!} device={d.index} />
      <Charts s={p.s} d={d} said={said} facts={facts} />
      <Panel title="All that is known">
        <AllFacts of={facts} />
      </Panel>
    </>
  );
}

/** Whom to ask about the processes on a device. */
function Ask(p: { s: State; device: number }) {
  const list = p.s.snap!.processes.flatMap((x, i) => {
    const reach = x.devices.some((u) => u.index === p.device) ? p.s.said?.processes[i]?.reach : "";
    return reach ? [{ pid: x.pid, reach }] : [];
  });
  if (list.length === 0) return null;
  return (
    <ul class="reasons ask" aria-label="Whose processes they are">
      {list.map((x) => (
        <li key={x.pid}>
          {x.pid} belongs to {x.reach}
        </li>
      ))}
    </ul>
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
  const dram = s.pools["dram"]!;
  return (
    <dl class="vitalrow">
      {["temperature.asic", "power.draw", "clocks.ai", s.busy].map((name) => (
        <Vital key={name} name={name === s.busy ? title("busy") : title(name)} {...field(s, name)} />
      ))}
      <Vital name="DRAM" text={dram.text} of={dram.text} ratio={dram.ratio} />
      <div>
        <dt>
          PCIe <span class="note">to it, {field(s, "pcie.link").text}</span>
        </dt>
        <dd>{field(s, "pcie.rx").text}</dd>
        <dd class="extra">{field(s, "pcie.tx").text} from it</dd>
      </div>
      {d.chips.map((c, i) => c.remote && <RemoteChip key={i} chip={c} nth={i} />)}
    </dl>
  );
}

/** A chip behind Ethernet: ttmond does not read it, tt-telemetry does. */
function RemoteChip(p: { chip: Chip; nth: number }) {
  const { remote_temperature_c: t, remote_power_w: w } = p.chip;
  return (
    <div title={sensorsOf(p.chip)}>
      <dt>
        Chip {p.chip.name || p.nth} <span class="note">remote</span>
      </dt>
      <dd class={t === null || t === undefined ? "gone" : ""}>{t === null || t === undefined ? "not read" : t.toFixed(0) + " °C"}</dd>
      {w !== null && w !== undefined && <dd class="extra">{w.toFixed(0)} W</dd>}
    </div>
  );
}

function Vital(p: { name: string } & Value) {
  return (
    <div title={p.why || undefined}>
      <dt>{p.name}</dt>
      <dd class={p.level ?? ""}>{p.of}</dd>
      <span class="bar" aria-hidden="true">
        {p.ratio !== null && <span class="fill" style={{ width: Math.min(100, p.ratio * 100).toFixed(1) + "%" }} />}
      </span>
    </div>
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
    <Panel title="Memory" tools={<A to={"/memory?device=" + d.bus_id}>who holds what ›</A>}>
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

function Charts(p: { s: State; d: Device; said: SaidDevice; facts: Sheet | null }) {
  const range = useRange();
  const route = useRoute();
  const extra = (route.query.get("metric") ?? "").split(",").filter((m) => p.s.metrics.some((x) => x.name === m));
  const charts = standard(p.said);
  const all = charts.flat().filter((m) => p.s.metrics.length === 0 || p.s.metrics.some((x) => x.name === m));
  const { answer, problem } = useRangeData(all, p.d.bus_id, range);
  const more = useRangeData(extra, p.d.bus_id, range);
  const { events, problem: unknown } = useEvents(range, p.d.bus_id);
  const marks = ofDevices(events, [p.d.bus_id]);
  const others = p.s.metrics.filter((m) => !all.includes(m.name) && !extra.includes(m.name));
  const help = (name: string) => p.s.metrics.find((m) => m.name === name)?.help;
  const limit = (name: string) => p.facts?.parts.flatMap((x) => x.pairs ?? []).find((f) => f.field === name)?.limit;
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
        {charts.map((c) => (
          <MetricChart key={c[0]} metrics={c} title={c.map((name) => title(name === p.said.busy ? "busy" : name)).join(", ")} help={help(c[0]!)} answer={answer} problem={problem} range={range} events={marks} limit={limit(c[0]!)} zero nameOf={title} />
        ))}
        {extra.map((m) => (
          <div key={m} class="removable">
            <MetricChart metrics={[m]} title={m} limit={limit(m)} help={help(m)} answer={more.answer} problem={more.problem} range={range} events={marks} nameOf={(x) => x} />
            <button class="remove" aria-label={"remove " + m} onClick={() => setQuery({ metric: extra.filter((x) => x !== m).join(",") })}>
              ✕
            </button>
          </div>
        ))}
      </div>
      <EventList events={events.slice(-50).reverse()} problem={unknown} />
      <WhatChanged />
    </Panel>
  );
}
