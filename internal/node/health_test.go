package node

import (
	"context"
	"testing"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// The loop that is stuck is not called healthy.
func TestHealthTellsTheTruth(t *testing.T) {
	server, err := allocsock.New(allocsock.Options{Ledger: ledger.New(ledger.Options{}), Listener: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	d := &ttmond{server: server}
	var stuck api.Health // nothing runs the loop
	if d.checkLoop(t.Context(), &stuck); len(stuck.Problems) != 1 || stuck.Problems[0].Part != "loop" {
		t.Errorf("problems %v", stuck.Problems)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	var h api.Health
	if d.checkLoop(t.Context(), &h); len(h.Problems) > 0 || h.Loop == nil {
		t.Errorf("problems %v, loop %v", h.Problems, h.Loop)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
