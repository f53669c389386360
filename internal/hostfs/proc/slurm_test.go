package proc

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestJobOfEnviron(t *testing.T) {
	for _, c := range []struct {
		name, job, step string
		want            environJob
	}{
		{"a step", "4711", "0", environJob{job: "4711", step: "0"}},
		{"a batch script", "4711", "4294967291", environJob{job: "4711", step: "batch"}},
		{"no step", "4711", "", environJob{job: "4711", step: ""}},
		{"none", "", "0", environJob{}},
		{"a forged job", "4711; rm", "0", environJob{}},
		{"a number that is none of Slurm's", "99999999999", "", environJob{}},
		{"a step that is none", "1", "\x1b[2J", environJob{job: "1", step: ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "a batch script" { // is told this as well, or instead
				if got := jobOfEnviron(map[string]string{"SLURM_JOB_ID": c.job, "ENVIRONMENT": "BATCH"}); got != c.want {
					t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
				}
			}
			if got := jobOfEnviron(map[string]string{"SLURM_JOB_ID": c.job, "SLURM_STEP_ID": c.step}); got != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
		})
	}
}

// The cgroup, which the user cannot change, takes precedence over the
// environment.
func TestAddJob(t *testing.T) {
	for _, c := range []struct {
		cgroup  string
		environ environJob
		job     string
		from    model.JobSource
	}{
		{"0::/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0\n", environJob{job: "8", step: "0"}, "7 batch", model.JobOfCgroup},
		{"4:memory:/slurm/uid_1000/job_9/step_3/task_0\n", environJob{}, "9 3", model.JobOfCgroup},
		{"0::/user.slice\n", environJob{job: "8", step: "0"}, "8 0", model.JobOfEnviron},
		{"0::/user.slice/step_4\n", environJob{}, " ", ""},
	} {
		t.Run(c.cgroup, func(t *testing.T) {
			p := &Process{placement: parseCgroup([]byte(c.cgroup)), environJob: c.environ}
			var out model.Process
			p.addJob(&out)
			if got := out.SlurmJob + " " + out.SlurmStep; got != c.job || out.SlurmFrom != c.from {
				t.Errorf("%s: %q from %q", c.cgroup, got, out.SlurmFrom)
			}
		})
	}
}
