package text

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/runs"
)

func jobsAnswer() *runs.JobsAnswer {
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	joules := 3600.0
	return &runs.JobsAnswer{Jobs: []runs.JobGroup{
		{
			Job: runs.Job{Kind: runs.JobSlurm, ID: "4711"}, User: "anna", UID: 1000, Start: start, Last: start.Add(90 * time.Second),
			Runs: []runs.Run{{ID: 1}, {ID: 2}}, Failed: 1, Energy: &joules,
			Devices: []runs.JobDevice{
				{Index: 0, Board: "n300", Peaks: map[string]runs.Peak{"dram": {Bytes: 3 << 30, Bound: "at_least"}, "l1": {Bytes: 8 << 20, Bound: "unsure"}}},
				{Index: 1, Board: "p150a", Peaks: map[string]runs.Peak{}},
			},
			Left: []runs.LeftNow{{Left: runs.Left{PID: 7, Region: "/dev/shm/tt_device_1_memory", Bytes: map[string]uint64{"dram": 1 << 30}}, Name: "py\x1b"}},
		},
		{
			Job: runs.Job{Kind: runs.JobPod, ID: "uid", Name: "llama,0", Namespace: "ml"}, UID: -1, Start: start, Last: start.Add(time.Hour), Running: true,
			Runs:    []runs.Run{{ID: 3, End: runs.Ending{Kind: runs.Running}}},
			Devices: []runs.JobDevice{{Index: -1, Peaks: map[string]runs.Peak{"dram": {Bytes: 1 << 20, Bound: "at_least"}}}},
			Holding: []runs.Holder{{PID: 9, Name: "serve", Devices: []int{0, 1}}},
		},
	}}
}

func TestJobs(t *testing.T) {
	want := `Job         User  State    Start                Elapsed  Dev  Board  DRAM peak  L1 peak   Energy   End                 Left
4711        anna  ended    2026-11-15 12:00:00  1m30s    0    n300   ≥3.0 GiB   ~8.0 MiB  ~1.0 Wh  1 of 2 runs failed  1.0 GiB accounted
                                                         1    p150a  –          –
ml/llama,0        running  2026-11-15 12:00:00  1h00m    –           ≥1.0 MiB   –         –        running
`
	if diff := cmp.Diff(want, string(AppendJobs(nil, jobsAnswer(), Options{Zone: time.UTC}))); diff != "" {
		t.Error(diff)
	}
	if got := string(AppendJobs(nil, &runs.JobsAnswer{}, Options{})); got != "no job has been seen at a device\n" {
		t.Errorf("%q", got)
	}
}

func TestJobsCSV(t *testing.T) {
	want := jobHeadsCSV +
		"slurm,4711,anna,1000,ended,2026-11-15T12:00:00Z,2026-11-15T12:01:30Z,90,0,n300,3221225472,at_least,8388608,unsure,0,1073741824,2,1,3600.0,unsure\n" +
		"slurm,4711,anna,1000,ended,2026-11-15T12:00:00Z,2026-11-15T12:01:30Z,90,1,p150a,,,,,0,1073741824,2,1,3600.0,unsure\n" +
		"pod,\"ml/llama,0\",,-1,running,2026-11-15T12:00:00Z,2026-11-15T13:00:00Z,3600,-1,,1048576,at_least,,,1,0,1,0,,\n"
	if diff := cmp.Diff(want, string(AppendJobsCSV(nil, jobsAnswer()))); diff != "" {
		t.Error(diff)
	}
}

func TestLeft(t *testing.T) {
	got := string(AppendLeft(nil, jobsAnswer()))
	for _, want := range []string{
		"region /dev/shm/tt_device_1_memory has 1.0 GiB of the dead process 7 (py\\x1b) of job 4711: nobody uses it\n",
		"process 9 (serve) of job ml/llama,0 holds device 0, 1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}
