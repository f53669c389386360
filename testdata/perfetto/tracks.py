"""Reads a trace with Perfetto's own schema and prints what is in it, as JSON.

Where trace_processor can be had, it answers in SQL; otherwise the packets are
decoded by the schema that comes with the package.

  tracks.py FILE
"""

import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

trace = schema.Trace()
with open(sys.argv[1], "rb") as f:
    trace.ParseFromString(f.read())

tracks, counters, slices, instants, flows = {}, {}, [], [], {}
open_slices = {}


def path(uuid):
    t = tracks[uuid]
    name = t.process.process_name if t.HasField("process") else t.name
    return (path(t.parent_uuid) + "/" if t.parent_uuid else "") + name


def strange(m):
    """Counts the fields, at any depth, that the schema does not know or knows by another type."""
    n = len(UnknownFieldSet(m))
    for field, value in m.ListFields():
        if field.type == field.TYPE_MESSAGE:
            n += sum(strange(v) for v in (value if not hasattr(value, "ListFields") else [value]))
    return n


unknown = strange(trace)
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    if not packet.HasField("track_event"):
        continue
    e = packet.track_event
    name = path(e.track_uuid)
    if e.type == schema.TrackEvent.TYPE_COUNTER:
        c = counters.setdefault(name, {"peak": e.double_counter_value, "points": 0, "unit": tracks[e.track_uuid].counter.unit_name, "last": 0})
        c["peak"] = max(c["peak"], e.double_counter_value)
        c["last"] = e.double_counter_value
        c["points"] += 1
    elif e.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
        open_slices.setdefault(e.track_uuid, []).append((e.name, packet.timestamp))
    elif e.type == schema.TrackEvent.TYPE_SLICE_END:
        what, since = open_slices[e.track_uuid].pop()
        slices.append([name, what, packet.timestamp - since])
    elif e.type == schema.TrackEvent.TYPE_INSTANT:
        instants.append([name, e.name])
        for flow in e.flow_ids:
            flows.setdefault(flow, []).append(["begin", name, e.name, packet.timestamp])
        for flow in e.terminating_flow_ids:
            flows.setdefault(flow, []).append(["end", name, e.name, packet.timestamp])
clocks = [[c.clock_id, c.timestamp] for p in trace.packet for c in p.clock_snapshot.clocks]
json.dump(
    {
        "counters": counters,
        "slices": slices,
        "instants": instants,
        "open": sum(len(x) for x in open_slices.values()),
        "flows": flows,
        "clocks": clocks,
        "unknown": unknown,
    },
    sys.stdout,
)
