package api

import (
	"net/http"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/model/params"
	"github.com/ttmon/ttmon/internal/node/stream"
)

// Call is a call of the API. Routes, limits, what a ttmon-server hands on to its ttmond,
// the list in /v1/version and the description in OpenAPI all follow from its row.
type Call struct {
	Method, Path, Help string
	Params             []Param
	Answer             any              // a value of the type that is sent; nil: see kind
	Kind               string           // media type; empty: application/json
	Serve              http.HandlerFunc // nil: it is not offered here
	Cheap              bool             // it takes no place among the queries of its user
	Follows            bool             // nor does it with follow=1, which makes it a watcher
	Live               bool             // only the process that collects can answer it
}

func (c *Call) route() string { return c.Method + " " + c.Path }

// Offered is how a call is answered where what it needs is there.
func Offered(there bool, h http.HandlerFunc) http.HandlerFunc {
	if there {
		return h
	}
	return nil
}

// Param is a parameter of a call.
type Param = params.Param

// SchemaOnly is an answer whose contract is described elsewhere.
type SchemaOnly struct {
	Schema string `json:"schema"`
}

var (
	PIDParam      = Param{Name: "pid", Help: "process id on this host", InPath: true, Required: true}
	AtParam       = Param{Name: "at", Help: "a moment, RFC 3339; the snapshot that held then"}
	BlocksAtParam = Param{Name: "at", Help: "a moment, RFC 3339; only where a recording is served"}
	FailureParam  = Param{Name: "id", Help: "of /v1/failures, or last", InPath: true, Required: true}
	StartParam    = Param{Name: "start", Help: "RFC 3339; an hour before end where it is left out"}
	EndParam      = Param{Name: "end", Help: "RFC 3339; now where it is left out"}
)

const text, events = "text/plain", "text/event-stream"

// Answers that are put together in place.
type (
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
func (s *Server) presentCalls() []Call {
	return []Call{
		{Method: "GET", Path: "/v1/snapshot", Serve: s.snapshot, Cheap: true, Help: "the latest snapshot: docs/snapshot.schema.json", Answer: SchemaOnly{}, Params: []Param{
			{Name: "interval", Help: "how often the client asks: where that is faster than snapshots are made, more are made, as long as it does; 0s: once, for a snapshot of now"},
		}},
		{Method: "GET", Path: "/v1/watch", Serve: s.watch, Cheap: true, Help: "snapshots as they are made, as server-sent events", Kind: events, Params: []Param{
			{Name: "interval", Help: "no oftener than this (5s), and, down to 100ms, as often as this"}, {Name: "said", Help: "1: before each snapshot an event said, with the snapshot in words"},
		}},
		{Method: "GET", Path: "/v1/memory", Serve: s.memory, Cheap: true, Kind: text, Help: "how much of each pool is allocated on each device and chip, of all processes, for programs without a parser of JSON: a line of names, then a line for each; chip all is the whole device", Params: params.Of(memoryQuery{})},
		{Method: "GET", Path: "/v1/stream", Serve: Offered(s.opt.Stream != nil, s.stream), Cheap: true, Kind: "application/x-ttmon-stream", Help: "for ttmon-server: numbered events after the last that it has, and snapshots, as frames of a kind and a length", Params: params.Of(stream.Query{})},
		{Method: "GET", Path: "/v1/topology", Serve: Offered(s.opt.Topology != nil, s.topology), Live: true, Help: "PCIe distances and Ethernet links", Answer: SchemaOnly{}},
		{Method: "GET", Path: "/v1/processes", Serve: s.processes, Live: true, Help: "who reports allocations, and how much", Answer: processesAnswer{}},
		{Method: "GET", Path: "/v1/processes/{pid}/buffers", Serve: s.buffers, Live: true, Help: "live buffers that a process reported, largest first", Answer: SchemaOnly{}, Params: append(params.Of(bufferQuery{}), PIDParam)},
		{Method: "GET", Path: "/v1/processes/{pid}/blocks", Serve: s.blocksOf, Live: true, Help: "its allocators with every block; for its user and root", Params: []Param{PIDParam, BlocksAtParam}, Answer: SchemaOnly{}},
		{Method: "GET", Path: "/v1/allocations", Serve: followed(s, s.opt.Changes, changes.Append), Live: true, Cheap: true, Kind: "application/x-ndjson", Help: "every allocation and free of processes that are watched through the kernel, as it happens, line by line: what a process holds (state), then its numbered changes, each [kind, ns after time, list, address, bytes of each bank, bytes asked for] with kind 1 taken, 2 given back, 3 list cleared, 4 list closed, 5 list defined, 6 events lost in all, 7 watched late, 8 ended; up_to: all that happened before was told. Who is too slow gets a state with how many were missed. For the users of the processes and root", Params: params.Of(followQuery{})},
		{Method: "GET", Path: "/v1/programs", Serve: followed(s, s.opt.Programs, appendPrograms), Live: true, Cheap: true, Kind: "application/x-ndjson", Help: "every program that runs on the chips of processes that are watched through the kernel, line by line: those of a process on a chip, numbered from n on, each [ns after the end of the one before, the first after time, length in ns by the chip's clock, name in names]. from is the number that the client's first program would have had: the numbers say how many are missing, and lost is how many of the process were not read on any chip; up_to: all that was reported before was sent. For the users of the processes and root", Params: params.Of(followQuery{})},
		{Method: "GET", Path: "/v1/lines", Serve: Offered(s.opt.Lines != nil, s.lines), Live: true, Help: "the lines of code of a process that held the most device memory when it held the most of each pool, also after it has exited, where libttmon knew its call sites; for its user and root", Answer: atpeak.ProcessLines{}, Params: params.Of(atpeak.Query{})},
		{Method: "GET", Path: "/v1/failures", Serve: Offered(s.opt.Failures != nil, s.failures), Live: true, Help: "the last allocations that failed, of the caller's programs; root sees all", Answer: SchemaOnly{}},
		{Method: "GET", Path: "/v1/failures/{id}", Serve: Offered(s.opt.Failures != nil, s.failure), Live: true, Help: "one of them: the request, the allocator as it was, why it failed and what would have made it fit; for its user and root", Answer: SchemaOnly{}, Params: []Param{
			FailureParam,
			{Name: "pid", Help: "with last: of this process"},
		}},
		{Method: "GET", Path: "/v1/leaks", Serve: s.leaks, Live: true, Help: "what dead processes had not freed", Answer: SchemaOnly{}},
		{Method: "GET", Path: "/v1/stale", Serve: Offered(s.opt.Stale != nil, s.stale), Live: true, Help: "what they left in tt-metal's own accounts", Answer: SchemaOnly{}},
		{Method: "GET", Path: "/v1/dump", Serve: s.dump, Live: true, Help: "everything live, for people", Kind: text, Params: []Param{{Name: "kind", Help: "remaining or kernels"}}},
		{Method: "GET", Path: "/v1/dumps", Serve: s.dumps, Live: true, Help: "the dumps that the caller's clients asked for", Answer: SchemaOnly{}},
		{Method: "GET", Path: "/v1/health", Serve: s.health, Cheap: true, Help: "how the daemon is doing; status 503 when something is late", Answer: Health{}},
		{Method: "GET", Path: "/v1/version", Serve: s.version, Cheap: true, Help: "which calls there are", Answer: versionAnswer{}},
		{Method: "GET", Path: "/v1/me", Serve: s.me, Live: true, Cheap: true, Help: "who the caller is", Answer: meAnswer{}},
		{Method: "GET", Path: "/v1/openapi.json", Serve: s.openapi, Cheap: true, Help: "this description", Answer: map[string]any{}},
		{Method: "POST", Path: "/v1/ticket", Serve: s.ticket, Cheap: true, Help: "a ticket for the page; on the Unix socket only", Answer: ticketAnswer{}},
		{Method: "POST", Path: "/v1/session", Serve: s.session, Live: true, Cheap: true, Help: `a session for a ticket, {"ticket": "…"}; its secret goes into the header ` + SessionHeader, Answer: sessionAnswer{}},
		{Method: "DELETE", Path: "/v1/session", Serve: s.endSession, Live: true, Cheap: true, Help: `ends the session whose secret is in the header ` + SessionHeader, Answer: SchemaOnly{}},
		{Method: "POST", Path: "/v1/reload", Serve: Offered(s.opt.Reload != nil || s.opt.Restart != nil, s.reload), Cheap: true, Help: "read the configuration again; on the Unix socket, for root", Answer: SchemaOnly{}},
	}
}
