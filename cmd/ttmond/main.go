// Ttmond is the node daemon: the allocation server that instrumented programs
// report to, the collector in the background, and the API that ttmon asks.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

func main() {
	path := flag.String("alloc-socket", allocsock.DefaultPath, "where old clients report")
	flag.Parse()
	if err := run(*path); err != nil {
		fmt.Fprintln(os.Stderr, "ttmond:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sock, err := allocsock.Listen(allocsock.SocketOptions{Path: path})
	if err != nil {
		return err
	}
	s, err := allocsock.New(allocsock.Options{Ledger: ledger.New(ledger.Options{}), Listener: sock.FD, Log: slog.Default()})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Run(ctx)
}
