package session

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ttmon/ttmon/internal/node/api/client"
)

// numbers sends numbers up to its last one.
type numbers struct {
	next, last int
	closed     *int
}

func (n *numbers) Next() (int, error) {
	if n.next++; n.next > n.last {
		return 0, io.EOF
	}
	return n.next, nil
}

func (n *numbers) Close() { *n.closed++ }

// TestFollow: messages of one connection after the other come in, each with its
// beginning and its end; where ttmond has nothing to send it is asked rarely.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, closed, connected := make(chan received[int]), 0, 0
		began := time.Now()
		go func() {
			defer close(in)
			follow(ctx, func(context.Context) (*numbers, error) {
				if connected++; connected == 2 {
					return nil, client.ErrNotFound
				}
				return &numbers{last: 2, closed: &closed}, nil
			}, in)
		}()
		for i, want := range []struct {
			x     received[int]
			after time.Duration
		}{
			{received[int]{began: true}, 0},
			{received[int]{message: 1}, 0},
			{received[int]{message: 2}, 0},
			{received[int]{why: io.EOF}, 0},
			{received[int]{why: client.ErrNotFound}, retryAfter},
			{received[int]{began: true}, retryAfter + retryAfterAbsent},
		} {
			x := <-in
			if x.began != want.x.began || x.message != want.x.message || !errors.Is(x.why, want.x.why) || time.Since(began) != want.after {
				t.Errorf("%d: %+v after %v, want %+v after %v", i, x, time.Since(began), want.x, want.after)
			}
		}
		cancel()
		if x, open := <-in; open && x.message != 1 {
			t.Errorf("after the end: %+v", x)
		}
		for range in {
		}
		if closed != 2 {
			t.Errorf("%d connections of 2 were closed", closed)
		}
	})
}
