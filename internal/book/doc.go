// Package book is the room of accounts: who holds which blocks, what is free, what fits,
// which requests failed, and what a program took in all. Events and ledgers enter by way
// of the sources; figures with their bounds leave. It may import model and hostfs.
package book
