// Package api is the API of ttmond and ttmon-server, version 1: JSON over HTTP on a Unix socket, for
// ttmon and for everybody else on the host.
//
// It is an end of the data flow: it reads published snapshots and the ledger
// and changes nothing.
//
//	GET /v1/snapshot                  the snapshot, ttmon.snapshot/1
//	GET /v1/watch[?interval=5s]       snapshots as they are made, as server-sent events
//	GET /v1/processes                 who reports allocations, and how much
//	GET /v1/processes/PID/buffers     its live buffers, largest first;
//	                                  ?limit= ?device= ?pool= ?sort=size|age ?start=
//	GET /v1/leaks                     what dead processes had not freed
//	GET /v1/stale                     what they left in tt-metal's own accounts
//	GET /v1/topology                  PCIe distances and Ethernet links
//	GET /v1/dump[?kind=kernels]       everything live as text, for people
//	GET /v1/dumps                     the dumps that the caller's clients asked for
//	GET /v1/health                    how the daemon is doing; status 503 when something is late
//	POST /v1/reload                   read the configuration again; for root
//	GET /v1/version
//
// Package past has the calls about what is remembered, package page those that say and
// draw for the page; a ttmon-server has both. Pages are served over TCP (docs/web.md):
//
//	GET /v1/me                        who the caller is
//	POST /v1/ticket, /v1/session      how a browser becomes a user of this host
//	GET /v1/openapi.json              all calls, described
//
// Errors are {"error": "…"} with a fitting status. A client that does not read
// is dropped, never waited for; a snapshot is encoded once for all of them. A
// user has a budget of connections, of watchers, and of calls that take memory
// or time; beyond it the answer is status 429.
//
// # Who sees what
//
// The kernel says who asks (SO_PEERCRED). Memory figures of every process are
// for everybody: that is what the daemon is for. Of other users' processes an
// ordinary user is told only what /proc would tell them. Where /proc is
// mounted with hidepid=1 (or ptraceable), that is not the name, the command
// line, the processor and host memory use, or the control group (container,
// job, unit); with hidepid=2 not the user either. Root, the owner, and members
// of the group that the gid= option of /proc names see everything. The ids of
// buffers and kernels can be addresses in the process that reported them: only
// its user and root see them.
package api
