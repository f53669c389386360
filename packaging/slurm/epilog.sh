#!/bin/sh
# Epilog of slurmd (Epilog= in slurm.conf): says what a job took of the devices, and
# what it has left behind. By choice, in /etc/ttmon/slurm.conf:
#
#   CLEAN=yes   removes what its dead processes left in tt-metal's accounting, as
#               far as no live process uses it
#   DRAIN=yes   drains the node when a chip hangs or is lost
#   LOG=FILE    appends to FILE instead of telling the system log
#
# slurmd drains a node whose epilog fails: this one never does.
set -u
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
CLEAN=no DRAIN=no LOG=''
# shellcheck disable=SC1091
[ ! -r /etc/ttmon/slurm.conf ] || . /etc/ttmon/slurm.conf

job=${SLURM_JOB_ID:-}
[ -n "$job" ] || exit 0
# Any process can say that it is of this job; those of other users are not.
set -- ${SLURM_JOB_UID:+--user "$SLURM_JOB_UID"}

say() {
	while IFS= read -r line; do
		if [ -n "$LOG" ]; then
			printf '%s job %s: %s\n' "$(date +%FT%T%z)" "$job" "$line" >>"$LOG"
		elif command -v logger >/dev/null; then
			logger -t ttmon-epilog -p daemon.notice -- "job $job: $line"
		fi
	done
}

# slurmd may call while the processes of the job are ending, and ttmond looks every
# second: what still holds a device after some of them stays.
left=''
for _ in 1 2 3 4 5 6 7 8 9 10; do
	left=$(ttmon runs --by job "$@" --left "$job" 2>/dev/null)
	[ $? -le 1 ] || break
	case $left in process*) sleep 1 ;; *) break ;; esac
done

if report=$(ttmon runs --by job "$@" --csv "$job" 2>&1); then
	printf '%s\n' "$report" | sed 1d | say
else
	printf '%s\n' "$report" | say # no ttmond; a chip that hangs is seen without one
fi
[ -z "$left" ] || printf 'left: %s\n' "$left" | say

if [ "$CLEAN" = yes ]; then
	printf '%s\n' "$left" | sed -n 's/^region \([^ ]*\) .*: nobody uses it$/\1/p' | sort -u | while IFS= read -r region; do
		ttmon stale --remove --yes "$region" 2>&1 | say
	done
fi

if [ "$DRAIN" = yes ]; then
	sick=$(ttmon check --ignore stale,link,hot,thermal_trips,resetting,unbound 2>&1)
	if [ $? -eq 2 ]; then
		sick=${sick%%|*}
		printf '%s\n' "$sick" | say
		scontrol update "NodeName=${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN "Reason=$(printf '%.120s' "$sick")" 2>&1 | say
	fi
fi
exit 0
