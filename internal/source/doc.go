// Package source is the room of those who read. Files of the driver, of tt-metal and of
// the kernel, messages and events of processes enter; typed facts and claims leave, with
// how sure they are. A package here knows one kind of file or event, decides nothing, and
// may import model, board, hostfs and book. collect joins what they say.
package source
