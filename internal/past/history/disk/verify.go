package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// idLength is that of a block's name; other directories of a database have
// shorter ones.
const idLength = 26

// setBadBlocksAside verifies the blocks of a database that is not open,
// and moves those out of the way that cannot be read: a question that touches
// one of them would fail as a whole. It costs a reading of the files.
func (s *Store) setBadBlocksAside(name string) {
	dir := filepath.Join(s.opt.Dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // openDatabase tells
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || len(e.Name()) != idLength {
			continue
		}
		block := filepath.Join(dir, e.Name())
		part, known := timeOf(block)
		if err := verify(block); err == nil || !damaged(err) {
			continue
		} else if _, moved := moveAside(block, dir+".damaged-block"); moved == nil {
			s.opt.Notify("part of the history is damaged; keeping the rest",
				"written", info.ModTime().UTC().Format(time.RFC3339), "moved_to", filepath.Base(dir)+".damaged-block", "err", err)
			if known {
				addHole(dir, part)
			}
		}
	}
}

// verify reads all of a block. The database checks the sums of what is read.
func verify(dir string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { // what it reads is mapped: a disk that does not give it is a fault of memory
		if p := recover(); p != nil {
			err = fmt.Errorf("reading %s: %v", dir, p)
		}
	}()
	b, err := tsdb.OpenBlock(nil, dir, nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	ir, err := b.Index()
	if err != nil {
		return err
	}
	defer ir.Close()
	cr, err := b.Chunks()
	if err != nil {
		return err
	}
	defer cr.Close()
	key, value := index.AllPostingsKey()
	all, err := ir.Postings(context.Background(), key, value)
	if err != nil {
		return err
	}
	var builder labels.ScratchBuilder
	var metas []chunks.Meta
	for all.Next() {
		if err := ir.Series(all.At(), &builder, &metas); err != nil {
			return err
		}
		for _, m := range metas {
			if _, _, err := cr.ChunkOrIterable(m); err != nil {
				return err
			}
		}
	}
	if all.Err() != nil {
		return all.Err()
	}
	return verifyPostings(ir)
}

// verifyPostings reads which series have which label.
func verifyPostings(ir tsdb.IndexReader) error {
	ctx := context.Background()
	names, err := ir.LabelNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		values, err := ir.SortedLabelValues(ctx, name, nil)
		if err != nil {
			return err
		}
		for _, v := range values {
			p, err := ir.Postings(ctx, name, v)
			if err != nil {
				return err
			}
			for p.Next() {
			}
			if p.Err() != nil {
				return p.Err()
			}
		}
	}
	return nil
}

// moveAside renames a directory. Only the last one of a name is kept.
func moveAside(dir, where string) (string, error) {
	if err := os.RemoveAll(where); err != nil {
		return "", err
	}
	if err := os.Rename(dir, where); err != nil {
		return "", err
	}
	return where, syncDir(filepath.Dir(where))
}
