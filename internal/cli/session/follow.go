package session

import (
	"context"
	"errors"
	"time"

	"github.com/ttmon/ttmon/internal/node/api/client"
)

// received is what came from a ttmond that is followed: that it began to send, a
// message, or why none comes any more.
type received[T any] struct {
	message T
	began   bool
	why     error // it has ended, or did not begin
}

// sender is a connection over which a ttmond sends messages.
type sender[T any] interface {
	Next() (T, error)
	Close()
}

// How long until a connection is tried again.
const (
	retryAfter       = 500 * time.Millisecond
	retryAfterAbsent = 10 * time.Second // where ttmond does not have what is asked for
)

// follow brings in messages until ctx is done. It connects again when a connection
// has ended.
func follow[T any, S sender[T]](ctx context.Context, connect func(context.Context) (S, error), in chan<- received[T]) {
	send := func(x received[T]) bool {
		select {
		case in <- x:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		err := followOnce(ctx, connect, send)
		if ctx.Err() != nil || !send(received[T]{why: err}) {
			return
		}
		pause := retryAfter
		if errors.Is(err, client.ErrNotFound) {
			pause = retryAfterAbsent
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// followOnce brings in the messages of one connection, and returns why it ended.
func followOnce[T any, S sender[T]](ctx context.Context, connect func(context.Context) (S, error), send func(received[T]) bool) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for ok := send(received[T]{began: true}); ok; {
		m, err := c.Next()
		if err != nil {
			return err
		}
		ok = send(received[T]{message: m})
	}
	return ctx.Err()
}
