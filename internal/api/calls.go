package api

import (
	"net/http"

	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/why"
)

// call is a call of the API. Routes, limits, what a ttmon-server hands on to its ttmond,
// the list in /v1/version and the description in OpenAPI all follow from its row.
type call struct {
	method, path, help string
	params             []param
	answer             any              // a value of the type that is sent; nil: see kind
	kind               string           // media type; empty: application/json
	serve              http.HandlerFunc // nil: it is not offered here
	cheap              bool             // it takes no place among the queries of its user
	follows            bool             // nor does it with follow=1, which makes it a watcher
	live               bool             // only the process that collects can answer it
}

func (c *call) route() string { return c.method + " " + c.path }

// offered is how a call is answered where what it needs is there.
func offered(there bool, h http.HandlerFunc) http.HandlerFunc {
	if there {
		return h
	}
	return nil
}

type param struct {
	name, help string
	inPath     bool
	required   bool
}

// schemaOnly is an answer whose contract is described elsewhere.
type schemaOnly struct {
	Schema string `json:"schema"`
}

var (
	pidParam      = param{name: "pid", help: "process id on this host", inPath: true, required: true}
	atParam       = param{name: "at", help: "a moment, RFC 3339; the snapshot that held then"}
	blocksAtParam = param{name: "at", help: "a moment, RFC 3339; only where a recording is served"}
	failureParam  = param{name: "id", help: "of /v1/failures, or last", inPath: true, required: true}
	startParam    = param{name: "start", help: "RFC 3339; an hour before end where it is left out"}
	endParam      = param{name: "end", help: "RFC 3339; now where it is left out"}
)

const text, events = "text/plain", "text/event-stream"

// Answers that are put together in place.
type (
	metricsAnswer struct {
		Schema  string      `json:"schema"`
		Metrics []chartable `json:"metrics"`
	}
	mapAnswer struct {
		Schema string    `json:"schema"`
		PID    int       `json:"pid"`
		Pools  []mapPool `json:"pools"`
		Doubts []string  `json:"doubts"`
		Fits   []string  `json:"fits"`
		Sites  []mapSite `json:"sites"`
	}
	meAnswer struct {
		Schema string  `json:"schema"`
		UID    *int    `json:"uid"`
		User   *string `json:"user"`
		Sees   string  `json:"sees"`
		Hiding int     `json:"hiding"` // as hidepid of /proc: 0 shows every process
		Text   string  `json:"text"`
	}
	ticketAnswer struct {
		Schema  string  `json:"schema"`
		Ticket  string  `json:"ticket"`
		Address string  `json:"address"`
		Expires float64 `json:"expires_s"`
	}
	sessionAnswer struct {
		Schema  string `json:"schema"`
		Session string `json:"session"`
	}
	versionAnswer struct {
		Name      string   `json:"name"`
		Version   string   `json:"version"`
		API       []string `json:"api"`
		Calls     []string `json:"calls"`
		Recording bool     `json:"recording"`
		Page      string   `json:"page"` // its address; empty: it is not served here
	}
	processesAnswer struct {
		Schema    string     `json:"schema"`
		Processes []reporter `json:"processes"`
	}
)

// presentCalls are those about the present, and about the daemon.
func (s *Server) presentCalls() []call {
	return []call{
		{method: "GET", path: "/v1/snapshot", serve: s.snapshot, cheap: true, help: "the latest snapshot: docs/snapshot.schema.json", answer: schemaOnly{}, params: []param{
			{name: "interval", help: "how often the client asks: where that is faster than snapshots are made, more are made, as long as it does; 0s: once, for a snapshot of now"},
		}},
		{method: "GET", path: "/v1/watch", serve: s.watch, cheap: true, help: "snapshots as they are made, as server-sent events", kind: events, params: []param{
			{name: "interval", help: "no oftener than this (5s), and, down to 100ms, as often as this"}, {name: "said", help: "1: before each snapshot an event said, with the snapshot in words"},
		}},
		{method: "GET", path: "/v1/memory", serve: s.memory, cheap: true, kind: text, help: "how much of each pool is allocated on each device and chip, of all processes, for programs without a parser of JSON: a line of names, then a line for each; chip all is the whole device", params: []param{
			{name: "device", help: "kernel index; all where it is left out"},
		}},
		{method: "GET", path: "/v1/stream", serve: offered(s.opt.Stream != nil, s.stream), cheap: true, kind: "application/x-ttmon-stream", help: "for ttmon-server: numbered events after the last that it has, and snapshots, as frames of a kind and a length", params: []param{
			{name: "log", help: "the log that after counts in"}, {name: "after", help: "number of the last event that the follower has"}, {name: "only", help: "events or snapshots"},
		}},
		{method: "GET", path: "/v1/said", serve: s.said, help: "a snapshot in words, as ttmon says it", params: []param{atParam}, answer: pagejson.Snapshot{}},
		{method: "GET", path: "/v1/mesh", serve: s.mesh, help: "which Ethernet links of the chips are up, and what is cut off", params: []param{atParam}, answer: pagejson.Mesh{}},
		{method: "GET", path: "/v1/facts", serve: s.facts, help: "all that is known of a device, in sections, as smi -q has it, or of a process", params: []param{{name: "device", help: "bus id"}, {name: "pid", help: "of the process, instead of a device"}, atParam}, answer: pagejson.Facts{}},
		{method: "GET", path: "/v1/words", serve: s.words, cheap: true, help: "the words for marks, missing values, sources and pools", answer: schemaOnly{}},
		{method: "GET", path: "/v1/metrics", serve: s.metrics, cheap: true, help: "what /v1/range can be asked for", answer: metricsAnswer{}},
		{method: "GET", path: "/v1/topology", serve: offered(s.opt.Topology != nil, s.topology), live: true, help: "PCIe distances and Ethernet links", answer: schemaOnly{}},
		{method: "GET", path: "/v1/topology/links", serve: offered(s.opt.Topology != nil, s.links), live: true, help: "the Ethernet links as the page shows them: a row for each, the worst first", answer: sheet.Table{}},
		{method: "GET", path: "/v1/processes", serve: s.processes, live: true, help: "who reports allocations, and how much", answer: processesAnswer{}},
		{method: "GET", path: "/v1/processes/{pid}/buffers", serve: s.buffers, live: true, help: "live buffers that a process reported, largest first", answer: schemaOnly{}, params: []param{
			pidParam,
			{name: "limit", help: "so many"},
			{name: "device", help: "in the process's own numbering"},
			{name: "pool", help: "dram, l1, …"},
			{name: "sort", help: "size or age"},
			{name: "start", help: "start_ticks of the process that is meant"},
		}},
		{method: "GET", path: "/v1/processes/{pid}/blocks", serve: s.blocksOf, live: true, help: "its allocators with every block; for its user and root", params: []param{pidParam, blocksAtParam}, answer: schemaOnly{}},
		{method: "GET", path: "/v1/allocations", serve: s.allocations, live: true, cheap: true, kind: "application/x-ndjson", help: "every allocation and free of processes that are watched through the kernel, as it happens, line by line: what a process holds (state), then its numbered changes, each [kind, ns after time, list, address, bytes of each bank, bytes asked for] with kind 1 taken, 2 given back, 3 list cleared, 4 list closed, 5 list defined, 6 events lost in all, 7 watched late, 8 ended; up_to: all that happened before was told. Who is too slow gets a state with how many were missed. For the users of the processes and root", params: []param{
			{name: "pid", help: "of this process only; may be given again"},
		}},
		{method: "GET", path: "/v1/programs", serve: s.programs, live: true, cheap: true, kind: "application/x-ndjson", help: "every program that runs on the chips of processes that are watched through the kernel, line by line: those of a process on a chip, numbered from n on, each [ns after the end of the one before, the first after time, length in ns by the chip's clock, name in names]. from is the number that the client's first program would have had: the numbers say how many are missing, and lost is how many of the process were not read on any chip; up_to: all that was reported before was sent. For the users of the processes and root", params: []param{
			{name: "pid", help: "of this process only; may be given again"},
		}},
		{method: "GET", path: "/v1/lines", serve: offered(s.opt.Lines != nil, s.lines), live: true, help: "the lines of code of a process that held the most device memory when it held the most of each pool, also after it has exited, where libttmon knew its call sites; for its user and root", answer: runs.ProcessLines{}, params: []param{
			{name: "pid", help: "of the process", required: true},
			{name: "start", help: "its start_ticks", required: true},
			{name: "since", help: "when it began: pids and start_ticks repeat from boot to boot"},
		}},
		{method: "GET", path: "/v1/failures", serve: offered(s.opt.Failures != nil, s.failures), live: true, help: "the last allocations that failed, of the caller's programs; root sees all", answer: schemaOnly{}},
		{method: "GET", path: "/v1/failures/{id}", serve: offered(s.opt.Failures != nil, s.failure), live: true, help: "one of them: the request, the allocator as it was, why it failed and what would have made it fit; for its user and root", answer: schemaOnly{}, params: []param{
			failureParam,
			{name: "pid", help: "with last: of this process"},
		}},
		{method: "GET", path: "/v1/failures/{id}/page", serve: offered(s.opt.Failures != nil, s.failurePage), live: true, help: "one of them as the page shows it: in sentences, the bank as it is drawn, and who held it; for its user and root", answer: why.Page{}, params: []param{failureParam}},
		{method: "GET", path: "/v1/failures/{id}/file", serve: offered(s.opt.Failures != nil, s.failureFile), live: true, kind: "text/html", help: "one of them as an HTML file of its own, to be saved and sent; for its user and root", params: []param{failureParam}},
		{method: "GET", path: "/v1/processes/{pid}/map", serve: s.mapOf, live: true, help: "its banks as they are drawn, call sites, and what would fit; for its user and root", answer: mapAnswer{}, params: []param{
			pidParam, blocksAtParam,
			{name: "fit", help: "a size: 512M"},
			{name: "shape", help: "of a tensor: 1,1,4096,4096"},
			{name: "dtype", help: "of its elements"},
			{name: "shard", help: "the part of each core, or over how many it is cut: 64x512, height:8, width:8, block:4x4"},
			{name: "layout", help: "tile or row_major"},
			{name: "pool", help: "dram, l1, l1_small or trace"},
		}},
		{method: "GET", path: "/v1/leaks", serve: s.leaks, live: true, help: "what dead processes had not freed", answer: schemaOnly{}},
		{method: "GET", path: "/v1/stale", serve: offered(s.opt.Stale != nil, s.stale), live: true, help: "what they left in tt-metal's own accounts", answer: schemaOnly{}},
		{method: "GET", path: "/v1/dump", serve: s.dump, live: true, help: "everything live, for people", kind: text, params: []param{{name: "kind", help: "remaining or kernels"}}},
		{method: "GET", path: "/v1/dumps", serve: s.dumps, live: true, help: "the dumps that the caller's clients asked for", answer: schemaOnly{}},
		{method: "GET", path: "/v1/health", serve: s.health, cheap: true, help: "how the daemon is doing; status 503 when something is late", answer: Health{}},
		{method: "GET", path: "/v1/version", serve: s.version, cheap: true, help: "which calls there are", answer: versionAnswer{}},
		{method: "GET", path: "/v1/me", serve: s.me, live: true, cheap: true, help: "who the caller is", answer: meAnswer{}},
		{method: "GET", path: "/v1/openapi.json", serve: s.openapi, cheap: true, help: "this description", answer: map[string]any{}},
		{method: "POST", path: "/v1/ticket", serve: s.ticket, cheap: true, help: "a ticket for the page; on the Unix socket only", answer: ticketAnswer{}},
		{method: "POST", path: "/v1/session", serve: s.session, live: true, cheap: true, help: `a session for a ticket, {"ticket": "…"}; its secret goes into the header ` + SessionHeader, answer: sessionAnswer{}},
		{method: "DELETE", path: "/v1/session", serve: s.endSession, live: true, cheap: true, help: `ends the session whose secret is in the header ` + SessionHeader, answer: schemaOnly{}},
		{method: "POST", path: "/v1/reload", serve: offered(s.opt.Reload != nil || s.opt.Restart != nil, s.reload), cheap: true, help: "read the configuration again; on the Unix socket, for root", answer: schemaOnly{}},
	}
}
