package node

import (
	"context"
	"testing"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// An allocation server that serves no client is not called healthy.
func TestHealthTellsTheTruth(t *testing.T) {
	server, err := allocsock.New(allocsock.Options{Ledger: ledger.New(ledger.Options{}), Listener: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	d := &ttmond{server: server}
	var stuck api.Health // it does not run
	if d.checkServer(t.Context(), &stuck); len(stuck.Problems) != 1 || stuck.Problems[0].Part != "alloc_server" {
		t.Errorf("problems %v", stuck.Problems)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	var h api.Health
	if d.checkServer(t.Context(), &h); len(h.Problems) > 0 || h.AllocSocket == nil {
		t.Errorf("problems %v, figures %v", h.Problems, h.AllocSocket)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
