// Package base is the room of small things that all others need: the configuration file,
// names that were meant, exit codes, what a daemon shares out among users. It imports
// nothing of ours; every room may import it.
package base
