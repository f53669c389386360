// Package pages keeps the account of the programs that ran on the chips of a
// process, from the pages that the chips send to tt-metal's real-time profiler.
// libttmon keeps the same one inside of a process (lib/src/work.c); this one is
// kept by ttmond, from what its probe copies (internal/source/uprobe).
//
// What arrives is the process's own memory, so it may be anything: an account
// never takes more memory than its limits say, and says nothing that cannot be.
package pages
