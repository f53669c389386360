// Package sim runs simulated Tenstorrent hosts: a private mount namespace in
// which the driver's files are in their real places, alive, and everything
// else is the real host's.
//
// It is the only place where made-up numbers come from. cmd/ttmon-sim is its
// command line; tests use Start, Host.Command and Host.Ctl. Nothing of it is
// linked into ttmon or ttmond.
//
// A host is a process of its own (role "host", serve.go) that holds the
// namespace, serves the files through FUSE and listens on a control socket.
// Commands enter the namespace and become the wanted program (role "join",
// join.go). Both are the calling program started again: see Reexec.
package sim
