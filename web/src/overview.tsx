// The first view: trouble, devices, who uses them.

import { WhatChanged } from "./changed";
import { HourCharts } from "./hour";
import { field, head } from "./figures";
import { A, Bar, health, Panel, StateOf } from "./parts";
import { ProcessTable } from "./processtable";
import { setQuery, useRoute } from "./route";
import { Spark } from "./spark";
import type { State } from "./store";
import type { SaidDevice } from "./answers";
import type { Device } from "./types";

export function Overview(p: { s: State }) {
  const { snap, said } = p.s;
  const route = useRoute();
  if (!snap || !said) return null;
  const many = snap.devices.length > 8;
  const processes = (
    <Panel title="Processes" tools={<A to="/processes">All processes</A>}>
      <ProcessTable snap={snap} said={said} brief />
    </Panel>
  );
  if (snap.devices.length === 1) {
    return (
      <>
        <div class="alone">
          <section aria-label="Devices">
            <Card d={snap.devices[0]!} s={said.devices[0]!} />
          </section>
          {processes}
        </div>
        <HourCharts s={p.s} />
        <WhatChanged />
      </>
    );
  }
  return (
    <>
      <section aria-label="Devices">
        {many ? <Cells devices={snap.devices} said={said.devices} by={route.query.get("by") ?? "temperature"} /> : <Cards devices={snap.devices} said={said.devices} />}
        {snap.devices.length === 0 && <p class="empty">{snap.host.unbound.length > 0 ? "No device of this host can be shown: the driver has none of them." : "There is no Tenstorrent device on this host."}</p>}
      </section>
      {snap.devices.length > 0 && <HourCharts s={p.s} />}
      <WhatChanged />
      {processes}
    </>
  );
}

function Cards(p: { devices: Device[]; said: SaidDevice[] }) {
  return (
    <div class={"cards n" + p.devices.length}>
      {p.devices.map((d, i) => (
        <Card key={d.bus_id} d={d} s={p.said[i]!} />
      ))}
    </div>
  );
}

const pools = ["dram", "l1"] as const;
const poolName = { dram: "DRAM", l1: "L1" };

const vitals = (s: SaidDevice) => ["temperature.asic", "power.draw", s.busy, "clocks.ai", "pcie.link"];

/** One label for how busy a device is, measured or estimated: the mark of the figure says which. */
const labelOf = (s: SaidDevice, name: string) => head(name === s.busy ? "busy" : name);

function Card(p: { d: Device; s: SaidDevice }) {
  const { d, s } = p;
  return (
    <article class={"card " + health(s.level)} aria-label={`device ${d.index}, ${s.name}, ${s.state}`}>
      <header>
        <A to={"/device/" + d.bus_id} class="name">
          <b>{d.index}</b> {s.name}
        </A>
        <span class="bus">{d.bus_id}</span>
        <StateOf of={s} />
      </header>
      <dl class="pools">
        {pools.map((pool) => (
          <div key={pool} title={s.reasons.join("\n")}>
            <dt>{poolName[pool]}</dt>
            <dd>
              <Bar figure={s.pools[pool]!} label={poolName[pool]} />
              <span class="num">{s.pools[pool]!.text}</span>
            </dd>
          </div>
        ))}
      </dl>
      <dl class="vitals">
        {vitals(s).map((name) => (
          <div key={name}>
            <dt>{labelOf(s, name)}</dt>
            <dd class={field(s, name).level ?? ""}>{field(s, name)[name === "power.draw" ? "of" : "text"]}</dd>
          </div>
        ))}
      </dl>
      {s.reason && <p class="why">{s.reason}</p>}
      <A to={"/device/" + d.bus_id} class="sparks">
        <Spark bus={d.bus_id} kind="power" max={d.power_limit_w} label="power over an hour" />
        <Spark bus={d.bus_id} kind="dram" max={dramMiB(d)} label="DRAM over an hour" />
        <span class="caption">power, an hour</span>
        <span class="caption">DRAM, an hour</span>
      </A>
      {s.stale && <p class="why">{s.stale} belong to dead processes</p>}
    </article>
  );
}

function dramMiB(d: Device): number | null {
  const total = (d.memory["dram"] as { total_bytes: number | null } | undefined)?.total_bytes ?? null;
  return total === null ? null : total / 2 ** 20;
}

// By what cells are coloured: how much of its limit a field is.
const shades: Record<string, { name: string; of: (s: SaidDevice) => number | null; text: (s: SaidDevice) => string }> = {
  temperature: shade("temperature", "temperature.asic"),
  power: shade("power", "power.draw"),
  dram: { name: "DRAM", of: (s) => s.pools["dram"]?.ratio ?? null, text: (s) => s.pools["dram"]?.text ?? "" },
  busy: { name: "busy", of: (s) => field(s, s.busy).ratio, text: (s) => field(s, s.busy).text },
};

function shade(name: string, of: string) {
  return { name, of: (s: SaidDevice) => field(s, of).ratio, text: (s: SaidDevice) => field(s, of).text };
}

const level = (ratio: number | null): number | null => (ratio === null ? null : Math.min(9, Math.max(0, Math.floor(ratio * 10))));

export function shadeOf(by: string, s: SaidDevice): { level: number | null; text: string } {
  const shade = shades[by] ?? shades["temperature"]!;
  return { level: level(shade.of(s)), text: shade.text(s) };
}

/** A chip of a device. Its memory is its own; the sensors are of the chip that has the PCIe link, but for what tt-telemetry reads of a remote one. */
export function shadeOfChip(by: string, d: Device, s: SaidDevice, chip: number): { level: number | null; text: string } {
  const dram = s.chips[chip]?.pools["dram"];
  if (by === "dram" && dram) return { level: level(dram.ratio), text: dram.text };
  const c = d.chips[chip];
  if (!c?.remote) return shadeOf(by, s);
  if (by === "temperature") return ofLimit(c.remote_temperature_c, d.temperature_limit_c, " °C");
  if (by === "power") return ofLimit(c.remote_power_w, d.power_limit_w, " W");
  return { level: null, text: "–" };
}

/** A value of a remote chip, against the limit of the chip beside it, which is of the same kind. */
function ofLimit(v: number | null | undefined, limit: number | null, unit: string): { level: number | null; text: string } {
  if (v === null || v === undefined) return { level: null, text: "–" };
  return { level: limit ? level(v / limit) : null, text: v.toFixed(0) + unit };
}

export function ShadeChoice(p: { by: string }) {
  return (
    <div class="segments" role="group" aria-label="Colour by">
      {Object.entries(shades).map(([key, s]) => (
        <button key={key} aria-pressed={p.by === key} onClick={() => setQuery({ by: key })}>
          {s.name}
        </button>
      ))}
    </div>
  );
}

/** Many devices: a cell each, tray by tray. */
function Cells(p: { devices: Device[]; said: SaidDevice[]; by: string }) {
  const trays = new Map<number, number[]>();
  p.devices.forEach((d, i) => {
    const tray = d.tray ?? 0;
    trays.set(tray, [...(trays.get(tray) ?? []), i]);
  });
  const order = [...trays.keys()].sort((a, b) => a - b);
  return (
    <>
      <div class="lead">
        <ShadeChoice by={p.by} />
        <Scale by={p.by} />
      </div>
      <div class="trays">
        {order.map((tray) => (
          <section key={tray} class="tray" aria-label={tray ? `tray ${tray}` : "devices"}>
            {tray > 0 && <h2>tray {tray}</h2>}
            <div class="cells">
              <div class="cell names" aria-hidden="true">
                <span />
                <span class="num">#</span>
                <span class="num">{head("temperature.asic")}</span>
                <span class="num">{head("power.draw")}</span>
                <span>DRAM</span>
              </div>
              {trays.get(tray)!.map((i) => (
                <Cell key={p.devices[i]!.bus_id} d={p.devices[i]!} s={p.said[i]!} by={p.by} />
              ))}
            </div>
          </section>
        ))}
      </div>
    </>
  );
}

function Scale(p: { by: string }) {
  return (
    <span class="scale" aria-label={`colours: ${shades[p.by]?.name ?? p.by} from none to its limit`}>
      0
      {Array.from({ length: 10 }, (_, i) => (
        <i key={i} class={"heat h" + i} />
      ))}
      limit
    </span>
  );
}

function Cell(p: { d: Device; s: SaidDevice; by: string }) {
  const { d, s } = p;
  const shade = shadeOf(p.by, s);
  const bad = health(s.level);
  return (
    <A to={"/device/" + d.bus_id} class={"cell " + bad} title={`device ${d.index}, ${s.name}, ${s.state}: ${field(s, "temperature.asic").text}, ${field(s, "power.draw").of}, DRAM ${s.pools["dram"]?.text}`}>
      <span class={"swatch heat " + (shade.level === null ? "none" : "h" + shade.level)} aria-hidden="true" />
      <b>{d.index}</b>
      {d.state === "ok" ? (
        <>
          <span class={"num t " + (field(s, "temperature.asic").level ?? "")}>{field(s, "temperature.asic").text.replace(" °C", "°")}</span>
          <span class={"num w " + (field(s, "power.draw").level ?? "")}>{field(s, "power.draw").text}</span>
          <Bar figure={s.pools["dram"]!} label="DRAM" />
          <span class="num m">{s.pools["dram"]!.text}</span>
        </>
      ) : (
        <span class="trouble">
          <StateOf of={s} />
        </span>
      )}
    </A>
  );
}
