package keep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// packedRun is a run with a process and a job.
func packedRun(id uint64, pid int, job string) runs.Run {
	at := t0.Add(time.Duration(id) * time.Minute)
	r := runs.Run{ID: id, Start: at, Last: at, End: runs.Ending{Kind: runs.Gone, At: at}, Processes: []runs.Process{{PID: pid}}, Left: []runs.Left{}}
	if job != "" {
		r.Job = &runs.Job{Kind: runs.JobSlurm, ID: job, Name: "job-" + job}
	}
	return r
}

// packRuns writes a compressed file for each list.
func packRuns(t interface {
	Helper()
	Fatal(...any)
}, s *Store, files ...[]runs.Run,
) {
	t.Helper()
	for _, list := range files {
		if err := s.Append(list, t0); err != nil {
			t.Fatal(err)
		}
		if err := s.pack(); err != nil {
			t.Fatal(err)
		}
	}
}

// spoil damages what is compressed of a file, and leaves its index.
func spoil(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := 8 + int(binary.LittleEndian.Uint32(b[4:]))
	for i := at; i < len(b); i++ {
		b[i] = 0xee
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A run that is named is read out of the one file that has it: the others are damaged
// here. One that ran for long is among later ones.
func TestNamedRunUnpacksOneFile(t *testing.T) {
	for name, c := range map[string]struct {
		ask  []string
		good []int // the files that may be read
		want []uint64
	}{
		"the first by number":          {[]string{"r1"}, []int{0}, []uint64{1}},
		"without the letter":           {[]string{"6"}, []int{2}, []uint64{6}},
		"one that ran for long":        {[]string{"r3"}, []int{2}, []uint64{3}},
		"two":                          {[]string{"r1", "r6"}, []int{0, 2}, []uint64{1, 6}},
		"by process":                   {[]string{"4711"}, []int{1}, []uint64{4}},
		"by job":                       {[]string{"job-88"}, []int{1}, []uint64{5}},
		"a number before a process":    {[]string{"2"}, []int{0}, []uint64{2}},
		"none has it":                  {[]string{"nowhere"}, nil, nil},
		"a number that no run has got": {[]string{"r99"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := OpenStore(t.TempDir(), 0, 0)
			defer s.Close()
			packRuns(t, s, []runs.Run{packedRun(1, 100, ""), packedRun(2, 101, "")}, []runs.Run{packedRun(4, 4711, ""), packedRun(5, 2, "88")}, []runs.Run{packedRun(6, 103, ""), packedRun(3, 104, "")})
			for i, f := range s.files() {
				if !slices.Contains(c.good, i) {
					spoil(t, f.path)
				}
			}
			list, _, err := s.Find(runs.Query{Names: c.ask})
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for i := range list {
				got = append(got, list[i].ID)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}

// Files without an index, of older releases, are searched as well.
func TestFileWithoutIndex(t *testing.T) {
	s := OpenStore(t.TempDir(), 0, 0)
	defer s.Close()
	packRuns(t, s, []runs.Run{packedRun(1, 100, "")}, []runs.Run{packedRun(2, 101, "")})
	path := s.files()[0].path
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[8+binary.LittleEndian.Uint32(b[4:]):], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readIndex(path); !errors.Is(err, errNoIndex) {
		t.Errorf("the index of a file that has none: %v", err)
	}
	for _, name := range []string{"r1", "r2", "100", "101"} {
		t.Run(name, func(t *testing.T) {
			if list, _, err := s.Find(runs.Query{Names: []string{name}}); err != nil || len(list) != 1 {
				t.Errorf("%v %v", list, err)
			}
		})
	}
}

// Over any files a search with indexes finds what one without finds. A later line of a
// run has all the names of the earlier ones, and perhaps one more.
func TestIndexHidesNothing(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := OpenStore(fmt.Sprintf("%s/%d", dir, n), 0, 0)
		defer s.Close()
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		jobs := []string{"", "", "3", "88"}
		known := map[uint64]runs.Run{}
		for range rapid.IntRange(1, 4).Draw(t, "files") {
			var list []runs.Run
			for range rapid.IntRange(1, 4).Draw(t, "runs") {
				id := rapid.Uint64Range(1, 9).Draw(t, "id")
				r := packedRun(id, rapid.IntRange(1, 9).Draw(t, "pid"), jobs[id%4])
				r.Processes = append(slices.Clone(known[id].Processes), r.Processes...)
				known[id] = r
				list = append(list, r)
			}
			packRuns(t, s, list)
		}
		q := runs.Query{Names: rapid.SliceOfN(rapid.SampledFrom([]string{"r3", "3", "7", "88", "job-88", "12"}), 1, 2).Draw(t, "names")}
		list, _, err := s.Find(q)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.search(&q, nil, func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		want, _ := f.newest(f.found)
		if len(want) == 0 {
			want, _ = f.newest(f.otherwise)
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Fatalf("%v: %s", q.Names, diff)
		}
	})
}

func FuzzIndex(f *testing.F) {
	list := []runs.Run{packedRun(3, 7, "88"), packedRun(9, 8, "")}
	f.Add(newIndex(list).frame()[8:])
	f.Add([]byte(indexMark + "\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := parseIndex(b)
		if err != nil {
			return
		}
		again, err := parseIndex(x.frame()[8:])
		if err != nil || !slices.Equal(again.numbers, x.numbers) || !slices.Equal(again.names, x.names) {
			t.Errorf("%+v became %+v, %v", x, again, err)
		}
	})
}
