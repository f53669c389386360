//go:build slurm

package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/machine"
	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{Limit: 30 * time.Minute})
	os.Exit(m.Run())
}

const config = `ClusterName=test
SlurmctldHost=node1
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
MpiDefault=none
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
Prolog=/usr/share/ttmon/slurm/prolog.sh
Epilog=/usr/share/ttmon/slurm/epilog.sh
KillWait=2
NodeName=node1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`

// cluster is one node with a board, on a simulated host on a machine.
type cluster struct {
	*machine.Machine
	t *testing.T
}

const control = "/var/tmp/sim.control"

// in is a command on the simulated host.
func (c *cluster) in(args ...string) []string {
	return append([]string{"ttmon-sim", "exec", "--control", control, "--"}, args...)
}

// background starts a program that stays; it ends with the machine.
func (c *cluster) background(args ...string) {
	c.t.Helper()
	cmd := c.Command(args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{machine.Boot(t, "fuse3", "munge", "slurm-wlm"), t}
	bin, err := programs.Build(false, "ttmon", "ttmond", "ttmon-server", "ttmon-sim")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ttmon", "ttmond", "ttmon-server", "ttmon-sim"} {
		c.Copy(filepath.Join(bin, name), "/usr/bin/"+name)
	}
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prolog.sh", "epilog.sh"} {
		c.Copy(filepath.Join(root, "packaging/slurm", name), "/usr/share/ttmon/slurm/"+name)
	}
	c.Write("/etc/slurm/slurm.conf", config, 0o644)
	c.Write("/etc/ttmon/slurm.conf", "CLEAN=yes\nDRAIN=yes\nLOG=/var/log/ttmon-slurm.log\n", 0o644)
	c.Write("/etc/hosts", "127.0.0.1 localhost node1\n", 0o644)
	c.Run("useradd", "--create-home", "--uid", "1234", "anna")
	for _, service := range []string{"slurmctld", "slurmd", "munge"} {
		_, _ = c.Try("systemctl", "stop", service)
	}
	c.Run("sh", "-c", "mkdir -p /var/spool/slurmctld /var/spool/slurmd /run/munge && chown munge /run/munge && dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 2>/dev/null && chown munge /etc/munge/munge.key && chmod 400 /etc/munge/munge.key")

	c.background("ttmon-sim", "--boards", "n150", "--control", control, "--", "sleep", "infinity")
	c.Await("the simulated host", func() bool { _, err := c.Try(c.in("true")...); return err == nil })
	c.Run(c.in("sh", "-c", "mkdir -p /run/munge /var/run/munge; chown munge /run/munge; exec setpriv --reuid munge --regid munge --clear-groups munged")...)
	c.background(c.in("slurmctld", "-D")...)
	c.background(c.in("slurmd", "-D", "-N", "node1")...)
	c.background(c.in("ttmond", "--alloc-socket", "/run/alloc.sock")...)
	c.background(c.in("ttmon-server", "--listen", "off")...)
	c.Await("Slurm", func() bool {
		out, _ := c.Try(c.in("sinfo", "-h", "-o", "%T")...)
		return out == "idle"
	})
	c.Await("ttmond", func() bool { _, err := c.Try(c.in("ttmon", "daemon", "status")...); return err == nil })
	return c
}

// chip is the id of the board's chip, by which tt-metal accounts.
func (c *cluster) chip() string {
	c.t.Helper()
	id := regexp.MustCompile(`\b\d{15,20}\b`).FindString(c.Run(c.in("ttmon-sim", "ctl", "chips")...))
	if id == "" {
		c.t.Fatal("the simulated host has no chip")
	}
	return id
}

// submit has anna run a program that holds the board and memory on it.
func (c *cluster) submit() (job string) {
	c.t.Helper()
	chip := c.chip()
	script := "#!/bin/sh\nexec ttmon-sim open --devices 0 -- ttmon-sim metal -e 'name train; open " + chip + " 0; alloc " + chip + " dram 3G; sleep 1h'\n"
	c.Write("/home/anna/job.sh", script, 0o755)
	out := c.Run(c.in("setpriv", "--reuid", "anna", "--regid", "anna", "--init-groups", "sbatch", "--chdir", "/home/anna", "--parsable", "/home/anna/job.sh")...)
	return strings.TrimSpace(out)
}

// A job shows its id, user and peak; when it has been killed, the epilog finds what
// it left, and takes it away.
func TestSlurm(t *testing.T) {
	c := start(t)
	job := c.submit()
	var table string
	c.Await("the job at the board", func() bool {
		table, _ = c.Try(c.in("ttmon", "smi")...)
		return strings.Contains(table, "slurm "+job) && strings.Contains(table, "train")
	})
	if !strings.Contains(table, "anna") {
		t.Errorf("the table does not say whose it is:\n%s", table)
	}
	fields := c.Run(c.in("ttmon", "smi", "--query-apps=user,slurm.job_id,slurm.step_id", "--format=csv,noheader")...)
	if !strings.HasSuffix(fields, "\nanna, "+job+", batch") {
		t.Errorf("fields: %q", fields)
	}
	var account string
	c.Await("the peak", func() bool {
		account, _ = c.Try(c.in("ttmon", "runs", "--by", "job", job)...)
		return strings.Contains(account, "3.0 GiB") && strings.Contains(account, "running")
	})
	for _, want := range []string{"anna", "n150", job} {
		if !strings.Contains(account, want) {
			t.Errorf("no %q in:\n%s", want, account)
		}
	}

	c.Run(c.in("scancel", "--signal=KILL", "--full", job)...)
	var log string
	c.Await("the epilog", func() bool {
		b, _ := os.ReadFile(c.Path("/var/log/ttmon-slurm.log"))
		log = string(b)
		return strings.Contains(log, "removed")
	})
	for _, want := range []string{"job " + job, ",anna,1234,ended,", "3221225472", "of the dead process", "nobody uses it"} {
		if !strings.Contains(log, want) {
			t.Errorf("the epilog does not say %q:\n%s", want, log)
		}
	}
	c.Await("a clean board", func() bool {
		out, _ := c.Try(c.in("ttmon", "stale")...)
		return strings.HasPrefix(out, "nothing stale")
	})
	c.Await("ttmond to see that nothing is left", func() bool {
		out, err := c.Try(c.in("ttmon", "runs", "--by", "job", "--left", job)...)
		return err == nil && out == ""
	})
	if got := c.Run(c.in("ttmon", "runs", "--by", "job", job)...); !strings.Contains(got, "ended") || !strings.Contains(got, "3.0 GiB") {
		t.Errorf("the job is forgotten:\n%s", got)
	}
	c.drains()
}

// drains: a job that ends on a hung chip drains the node.
func (c *cluster) drains() {
	c.t.Helper()
	job := c.submit()
	c.Await("the second job", func() bool {
		out, _ := c.Try(c.in("ttmon", "smi")...)
		return strings.Contains(out, "slurm "+job)
	})
	c.Run(c.in("ttmon-sim", "ctl", "dead", "0")...)
	c.Await("ttmond to see it", func() bool {
		_, err := c.Try(c.in("ttmon", "check")...)
		exit, ok := err.(*exec.ExitError)
		return ok && exit.ExitCode() == 2
	})
	c.Run(c.in("scancel", job)...)
	c.Await("the drain", func() bool {
		out, _ := c.Try(c.in("sinfo", "-h", "-R", "-o", "%E")...)
		return strings.Contains(out, "TTMON CRITICAL")
	})
}
