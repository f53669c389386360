// Package slurm tests ttmon with a real Slurm: Debian's slurm-wlm and munge on one
// node, a bare Debian 12 with simulated boards. Its test is behind the build tag
// slurm (make test-slurm): it needs root, and a while for the first machine.
package slurm
