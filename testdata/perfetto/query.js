// Asks Perfetto's trace_processor about a trace, in SQL:
//
//   node query.js FOLDER TRACE SQL...
//
// FOLDER holds the files of Perfetto's page (engine_bundle.js and
// trace_processor.wasm, which is the trace_processor itself). For each question it
// prints a line of JSON: a list of rows. It speaks the protocol that the page
// speaks with it (protos/perfetto/trace_processor/trace_processor.proto), whose
// few messages are read and written here by hand.
"use strict";

const fs = require("fs");
const path = require("path");
const url = require("url");

const [folder, file, ...questions] = process.argv.slice(2);

// worker runs the engine, which believes that it is a worker of a browser whose
// page is the folder, and returns what it answers messages with.
function worker() {
  const page = url.pathToFileURL(path.resolve(folder) + "/");
  const read = (name) => fs.readFileSync(new URL(name, page));
  const self = { location: { href: new URL("engine_bundle.js", page).href } };
  const seen = {
    self,
    process: undefined,
    window: undefined,
    require: undefined,
    WorkerGlobalScope: function () {},
    XMLHttpRequest: class {
      open(_, name) {
        this.name = name;
      }
      send() {
        this.response = read(this.name);
      }
    },
    fetch: async (name) => new Response(read(name), { headers: { "Content-Type": "application/wasm" } }),
    console: { ...console, log() {}, warn() {} }, // what the engine says of its own
  };
  new Function(...Object.keys(seen), read("engine_bundle.js").toString())(...Object.values(seen));
  return self;
}

// Writing.
function varint(n) {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  out.push(Number(n));
  return Buffer.from(out);
}
const number = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const bytes = (field, b) => Buffer.concat([varint((field << 3) | 2), varint(b.length), b]);

// Reading: the fields of a message, as [number, value] in order.
function fields(b) {
  const out = [];
  let at = 0;
  const next = () => {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const x = b[at++];
      n |= BigInt(x & 127) << shift;
      if (x < 128) return n;
    }
  };
  while (at < b.length) {
    const key = Number(next());
    const field = key >> 3;
    if ((key & 7) === 0) out.push([field, next()]);
    else if ((key & 7) === 1) (out.push([field, b.subarray(at, at + 8)]), (at += 8));
    else if ((key & 7) === 2) {
      const n = Number(next());
      out.push([field, b.subarray(at, at + n)]);
      at += n;
    } else throw new Error("a field of kind " + (key & 7));
  }
  return out;
}
const all = (list, field) => list.filter(([f]) => f === field).map(([, v]) => v);
function numbers(b) {
  const out = [];
  for (let at = 0; at < b.length; ) {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const x = b[at++];
      n |= BigInt(x & 127) << shift;
      if (x < 128) break;
    }
    out.push(BigInt.asIntN(64, n));
  }
  return out;
}

// The rows of an answer.
function rows(results) {
  const names = [];
  const cells = [];
  for (const r of results) {
    const f = fields(r);
    names.push(...all(f, 1).map((b) => b.toString()));
    const wrong = all(f, 2).map((b) => b.toString()).find((s) => s);
    if (wrong) throw new Error(wrong);
    for (const batch of all(f, 3).map(fields)) {
      const kinds = all(batch, 1).flatMap((b) => numbers(b));
      const ints = all(batch, 2).flatMap((b) => numbers(b));
      const floats = Buffer.concat(all(batch, 3));
      const texts = all(batch, 5).map((b) => b.toString()).join("").split("\0");
      let i = 0, x = 0, t = 0;
      for (const kind of kinds) {
        if (kind === 1n) cells.push(null);
        else if (kind === 2n) cells.push(Number(ints[i++]));
        else if (kind === 3n) cells.push(floats.readDoubleLE(8 * x++));
        else if (kind === 4n) cells.push(texts[t++]);
        else throw new Error("a cell of kind " + kind);
      }
    }
  }
  const out = [];
  for (let i = 0; i < cells.length; i += names.length) out.push(cells.slice(i, i + names.length));
  return out;
}

async function main() {
  const { port1: here, port2: there } = new MessageChannel();
  const replies = [];
  let wake = () => {};
  here.onmessage = (m) => {
    for (const b of all(fields(Buffer.from(m.data)), 1)) replies.push(fields(b));
    wake();
  };
  worker().onmessage({ data: there });
  let seq = 0;
  const ask = (method, ...more) => here.postMessage(new Uint8Array(bytes(1, Buffer.concat([number(1, ++seq), number(2, method), ...more]))));
  const reply = async () => {
    while (replies.length === 0) await new Promise((f) => (wake = f));
    const f = replies.shift();
    const fatal = all(f, 5)[0];
    if (fatal) throw new Error(fatal.toString());
    return f;
  };
  const data = fs.readFileSync(file);
  for (let at = 0; at < data.length; at += 8 << 20) {
    ask(1, bytes(101, data.subarray(at, at + (8 << 20))));
    for (const r of all(await reply(), 201).map(fields)) {
      const wrong = all(r, 2)[0];
      if (wrong && wrong.length) throw new Error("the trace is not taken: " + wrong.toString());
    }
  }
  ask(2);
  await reply();
  for (const sql of questions) {
    ask(3, bytes(103, bytes(1, Buffer.from(sql))));
    const results = [];
    for (let last = false; !last; ) {
      for (const r of all(await reply(), 203)) {
        results.push(r);
        const f = fields(r);
        last = all(f, 2).some((b) => b.length) || all(f, 3).map(fields).some((b) => all(b, 6)[0] === 1n);
      }
    }
    console.log(JSON.stringify(rows(results)));
  }
  process.exit(0);
}

main().catch((err) => {
  console.error(String(err));
  process.exit(1);
});
