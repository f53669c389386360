package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// compactor writes blocks as the database's own does, in a goroutine of the
// database's. What it reads for that is mapped: where the disk does not give
// it, it fails, and not the daemon.
type compactor struct {
	tsdb.Compactor
	d *database
}

// newCompactor is for tsdb.Options.
func (d *database) newCompactor(ctx context.Context, r prometheus.Registerer, l *slog.Logger, ranges []int64, pool chunkenc.Pool, o *tsdb.Options) (tsdb.Compactor, error) {
	c, err := tsdb.NewLeveledCompactorWithOptions(ctx, r, l, ranges, pool, tsdb.LeveledCompactorOptions{
		MaxBlockChunkSegmentSize:    o.MaxBlockChunkSegmentSize,
		EnableOverlappingCompaction: o.EnableOverlappingCompaction,
		PD:                          o.PostingsDecoderFactory,
		UseUncachedIO:               o.UseUncachedIO,
		BlockExcludeFilter:          o.BlockCompactionExcludeFunc,
	})
	return compactor{c, d}, err
}

// Write makes a block of the newest samples. They are in the write-ahead log
// as well: if what the database has of them besides cannot be read, it is to
// be reopened from there.
func (c compactor) Write(dest string, b tsdb.BlockReader, mint, maxt int64, base *tsdb.BlockMeta) (ids []ulid.ULID, err error) {
	err = surviving(func() error {
		ids, err = c.Compactor.Write(dest, b, mint, maxt, base)
		return err
	})
	if unreadable(err) {
		c.d.renew.Store(true)
	}
	return ids, err
}

// unreadable reports whether files of the newest samples hold what was not put
// into them, or nothing.
func unreadable(err error) bool {
	var fault *faultError
	var corrupt *chunks.CorruptionErr
	return errors.As(err, &fault) || errors.As(err, &corrupt)
}

// Compact joins blocks. One that is damaged is set aside; the next try does
// without it.
func (c compactor) Compact(dest string, dirs []string, open []*tsdb.Block) (ids []ulid.ULID, err error) {
	err = surviving(func() error {
		ids, err = c.Compactor.Compact(dest, dirs, open)
		return err
	})
	if err != nil && !errors.Is(err, context.Canceled) && damaged(err) {
		c.d.suspect()
	}
	return ids, err
}

// faultError is a fault of memory while a file was read that is mapped.
type faultError struct{ what any }

func (e *faultError) Error() string { return fmt.Sprintf("reading the history: %v", e.what) }

// surviving calls f, which reads mapped files, and turns a fault of memory into
// an error.
func surviving(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &faultError{p}
		}
	}()
	return f()
}
