#!/bin/sh
# Prolog of slurmd (Prolog= in slurm.conf): looks at the devices before a job
# begins. By choice, in /etc/ttmon/slurm.conf:
#
#   REFUSE=yes  fails when a chip hangs or is lost: slurmd then drains the node and
#               puts the job back into the queue
#   CLEAN=yes   removes what dead processes left in tt-metal's accounting, as far as
#               no live process uses it
#   LOG=FILE    appends to FILE instead of telling the system log
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
REFUSE=no CLEAN=no LOG=''
# shellcheck disable=SC1091
[ ! -r /etc/ttmon/slurm.conf ] || . /etc/ttmon/slurm.conf

say() {
	while IFS= read -r line; do
		if [ -n "$LOG" ]; then
			printf '%s job %s: %s\n' "$(date +%FT%T%z)" "${SLURM_JOB_ID:-?}" "$line" >>"$LOG"
		elif command -v logger >/dev/null; then
			logger -t ttmon-prolog -p daemon.notice -- "job ${SLURM_JOB_ID:-?}: $line"
		fi
	done
}

if [ "$CLEAN" = yes ]; then ttmon stale --remove --yes 2>&1 | grep -v '^nothing stale' | say; fi
state=$(ttmon check --ignore stale,link,hot,thermal_trips,resetting,unbound 2>&1)
code=$?
if [ $code -ne 0 ]; then printf '%s\n' "${state%%|*}" | say; fi
if [ $code -eq 2 ] && [ "$REFUSE" = yes ]; then exit 1; fi
exit 0
