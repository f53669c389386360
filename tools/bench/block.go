package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// blockSpan is the time of a block of made-up samples.
type blockSpan struct {
	from, until time.Time
	step        time.Duration
}

// samplesPerChunk is what Prometheus puts into one.
const samplesPerChunk = 120

// blockSeries is one of its series: what it is at each moment.
type blockSeries struct {
	labels labels.Labels
	value  func(at time.Time) float64
}

// writeBlock writes a block of Prometheus's database, with what each series is at each
// step. It makes chunks and index itself: by way of a head, as samples
// that come one by one, it takes fifty times as long.
func writeBlock(dir string, span blockSpan, series []blockSeries) error {
	// Of the index and of the chunks alike.
	slices.SortFunc(series, func(a, b blockSeries) int { return labels.Compare(a.labels, b.labels) })
	id := ulid.MustNew(ulid.Timestamp(span.from), ulid.DefaultEntropy())
	dir = filepath.Join(dir, id.String())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	meta := tsdb.BlockMeta{ULID: id, MinTime: span.from.UnixMilli(), MaxTime: span.until.UnixMilli(), Version: 1, Compaction: tsdb.BlockMetaCompaction{Level: 1, Sources: []ulid.ULID{id}}}
	made := make([][]chunks.Meta, len(series))
	for i := range series {
		list, samples, err := makeChunks(span, series[i].value)
		if err != nil {
			return err
		}
		made[i] = list
		meta.Stats.NumSeries++
		meta.Stats.NumChunks += uint64(len(list))
		meta.Stats.NumSamples += samples
		meta.Stats.NumFloatSamples += samples
	}
	if err := writeChunks(filepath.Join(dir, "chunks"), made); err != nil {
		return fmt.Errorf("writing chunks: %w", err)
	}
	if err := writeIndex(filepath.Join(dir, "index"), series, made); err != nil {
		return fmt.Errorf("writing an index: %w", err)
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "meta.json"), text, 0o600)
}

// makeChunks makes those of one series.
func makeChunks(span blockSpan, value func(time.Time) float64) (list []chunks.Meta, samples uint64, err error) {
	var c *chunkenc.XORChunk
	var app chunkenc.Appender
	for at := span.from; at.Before(span.until); at = at.Add(span.step) {
		if samples%samplesPerChunk == 0 {
			c = chunkenc.NewXORChunk()
			if app, err = c.Appender(); err != nil {
				return nil, 0, err
			}
			list = append(list, chunks.Meta{Chunk: c, MinTime: at.UnixMilli()})
		}
		app.Append(0, at.UnixMilli(), value(at))
		list[len(list)-1].MaxTime = at.UnixMilli()
		samples++
	}
	return list, samples, nil
}

// chunkFile is how large a file of chunks may be.
const chunkFile = 16 << 20

// writeChunks writes all chunks, and notes in each where it is.
func writeChunks(dir string, made [][]chunks.Meta) (err error) {
	w, err := chunks.NewWriter(dir, chunks.WithSegmentSize(chunkFile)) // it has all of a file from the beginning
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, list := range made {
		if err := w.WriteChunks(list...); err != nil {
			return err
		}
	}
	return nil
}

// writeIndex writes which series there are, and which chunks they have.
func writeIndex(path string, series []blockSeries, made [][]chunks.Meta) (err error) {
	w, err := index.NewWriter(context.Background(), path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	symbols := map[string]bool{}
	for i := range series {
		series[i].labels.Range(func(l labels.Label) { symbols[l.Name], symbols[l.Value] = true, true })
	}
	for _, s := range slices.Sorted(maps.Keys(symbols)) {
		if err := w.AddSymbol(s); err != nil {
			return err
		}
	}
	for i := range series {
		if err := w.AddSeries(storage.SeriesRef(i), series[i].labels, made[i]...); err != nil {
			return err
		}
	}
	return nil
}
