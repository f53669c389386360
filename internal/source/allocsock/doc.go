// Package allocsock is the allocation server: a Unix stream socket on which
// programs instrumented for the old tt-metal allocation server report every
// buffer they allocate and free, and its old viewers send queries.
//
// It is a push source: each connection has a goroutine, which waits for the client, reads
// in its turn, turns the bytes into ledger events in place and applies them in
// batches. It supports every dialect that an old client ever used, never closes
// a connection on a client (a C++ one dies of SIGPIPE at its next report), and
// hands all of its sockets to a successor.
//
// # Dialects
//
// Nothing on this socket has a magic number, a version or a length. What is
// known: an AllocMessage is 72, 112, 128 or 144 bytes long; all versions begin
// with the same 40 bytes; clients send zeros behind them; a type is never 0; a
// send of up to 144 bytes arrives in one piece. So the distance from one
// message to the first byte that is not zero behind its header is the version,
// and a message can be applied before its version is known. A viewer waits for
// the answer to a query, so what it has sent by then is one message. The other
// dialects are identified by their first bytes; see decoder.
//
// Malformed bytes are skipped up to the next valid header, and counted;
// messages on other connections are not affected.
//
// # Which buffer type
//
// Two lists of numbers are in use. tt-metal sends its own enumeration: 0 DRAM,
// 1 L1, 2 SYSTEM_MEMORY, 3 L1_SMALL, 4 TRACE. The Python client and three
// documents have 2 L1_SMALL and 3 TRACE. The first is used by clients that send
// 128 or 144 bytes (only C++ clients ever did), by clients that have sent a 4,
// and by programs that are not Python. A Python interpreter that has not loaded
// tt-metal uses the second. One that has may run both clients, each with a
// connection of its own: there the buffer id decides, since the Python client
// counts 1, 2, 3 and tt-metal sends addresses, which are multiples of 32. See
// reading.
//
// # Who reports
//
// The kernel says which process connected (SO_PEERCRED, SO_PEERPIDFD) and which
// wrote (SO_PASSCRED); the pid inside a message is shown but never trusted. A
// process is watched by its pidfd, so that its memory is gone milliseconds
// after it is, and another process with the same pid, or one that we may not
// signal, is never mistaken for it.
package allocsock

// DefaultPath is compiled into every old client.
const DefaultPath = "/tmp/tt_allocation_server.sock"
