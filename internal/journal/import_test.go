package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/wire"
)

// oldRecord is a snapshot as releases before the journal kept it.
func oldRecord(t testing.TB, at time.Time, body []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll(body, nil)
	b := binary.LittleEndian.AppendUint32(nil, oldMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(packed)))
	b = binary.LittleEndian.AppendUint64(b, uint64(at.UnixMilli()))
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(packed))
	return append(b, packed...)
}

// An upgrade keeps what earlier releases had written: events with their numbers,
// and snapshots, but for what is damaged.
func TestImport(t *testing.T) {
	dir := t.TempDir()
	log, err := eventlog.Open(filepath.Join(dir, "events"))
	ok(t, err)
	e := event(2)
	e.From = &eventlog.Origin{Log: "x", Seq: 5}
	ok(t, log.Append(event(1), e))
	log.Close()
	ok(t, os.Mkdir(filepath.Join(dir, "snapshots"), 0o700))
	for hour := range 3 {
		var b []byte
		for s := 3600 * hour; s < 3600*(hour+1); s += 600 {
			r := oldRecord(t, sec(s), wire.Append(nil, host(s, s)))
			if s == 1200 {
				r[len(r)-1] ^= 1
			}
			b = append(b, r...)
		}
		b = append(b, "Tns1, and then it was killed"...)
		ok(t, os.WriteFile(filepath.Join(dir, "snapshots", strconv.FormatInt(sec(3600*hour).UnixMilli(), 10)+".snapshots"), b, 0o600))
	}
	j := open(t, Options{Dir: filepath.Join(dir, "journal")})
	ok(t, j.Import(dir))
	for _, c := range []struct{ at, want int }{{0, 0}, {1300, 600}, {1800, 1800}, {99999, 10200}} {
		t.Run(fmt.Sprint(c.at), func(t *testing.T) {
			at, body, err := j.At(sec(c.at))
			if err != nil || !at.Equal(sec(c.want)) || !bytes.Equal(body, wire.Append(nil, host(c.want, c.want))) {
				t.Errorf("at %d: the snapshot of %v, %v", c.at, at.Sub(t0), err)
			}
		})
	}
	ok(t, j.Append(event(3)))
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2 3" || j.Origin().Seq != 5 {
		t.Errorf("events %s, the last of ttmond's is %d", got, j.Origin().Seq)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	ok(t, j.Close())
	j = open(t, Options{Dir: filepath.Join(dir, "journal")})
	ok(t, j.Import(dir))
	if got := seqs(j.Find(eventlog.Query{})); got != "1 2 3" {
		t.Errorf("after a restart: events %s", got)
	}
}

// Whatever is in the files of an earlier release, they are read without harm.
func FuzzOldSnapshots(f *testing.F) {
	f.Add(oldRecord(f, t0, []byte("{}")))
	f.Add([]byte("Tns1\xff\xff\xff\x00"))
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := oldSnapshots(bytes.NewReader(b), dec, func(time.Time, []byte) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
