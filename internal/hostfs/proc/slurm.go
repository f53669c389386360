package proc

import "github.com/ttmon/ttmon/internal/model"

// environJob is the Slurm job that a process's environment names. Clusters that
// track processes without control groups leave no other trace.
type environJob struct{ job, step, name, ssh string }

// addJob sets the job that a process belongs to. The cgroup takes precedence.
func (p *Process) addJob(out *model.Process) {
	switch {
	case p.placement.slurmJob != "":
		out.SlurmJob, out.SlurmStep, out.SlurmFrom = p.placement.slurmJob, p.placement.slurmStep, model.JobOfCgroup
	case p.environJob.job != "":
		out.SlurmJob, out.SlurmStep, out.SlurmFrom = p.environJob.job, p.environJob.step, model.JobOfEnviron
	}
}

// readEnvironJob reads the variables that Slurm sets for the processes it
// starts. It is empty where the environment may not be read.
func (r *Reader) readEnvironJob(p *Process) environJob {
	env, err := r.Environ(p, func(key string) bool {
		switch key {
		case "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_NAME", "ENVIRONMENT", "SSH_CONNECTION":
			return true
		}
		return false
	})
	if err != nil {
		return environJob{}
	}
	return jobOfEnviron(env)
}

// stepName is the name of a step that Slurm numbers at the end of 32 bits.
func stepName(step string) string {
	switch step {
	case "4294967291":
		return "batch"
	case "4294967292":
		return "extern"
	case "4294967290":
		return "interactive"
	}
	return step
}

func jobOfEnviron(env map[string]string) environJob {
	j := environJob{job: env["SLURM_JOB_ID"], step: stepName(env["SLURM_STEP_ID"]), ssh: sshFrom(env["SSH_CONNECTION"])}
	if name := env["SLURM_JOB_NAME"]; len(name) < maxJobName {
		j.name = name
	}
	if j.step == "" && env["ENVIRONMENT"] == "BATCH" { // a batch script has no SLURM_STEP_ID
		j.step = "batch"
	}
	if !isDigits(j.job) || len(j.job) > 10 { // 32 bits
		return environJob{ssh: j.ssh}
	}
	if !isStep(j.step) || len(j.step) > len("interactive") {
		j.step = ""
	}
	return j
}
