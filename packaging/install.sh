#!/bin/sh
# Installs ttmon from a release archive, without root:
#
#   sh install.sh [ARCHIVE]            into ~/.local
#   sh install.sh --prefix DIR …       into DIR
#   sh install.sh --uninstall          removes what it has installed
#
# ARCHIVE is ttmon_VERSION_linux_ARCH.tar.gz; without one, the one for this machine
# beside this script. Its checksum must be in SHA256SUMS beside it. Nothing is
# downloaded, and nothing outside the prefix is written.
set -eu
umask 022

die() { echo "install.sh: $*" >&2; exit 1; }
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit "$1"; }

prefix=${HOME:-}/.local
archive='' uninstall=''
while [ $# -gt 0 ]; do
	case $1 in
	--prefix) [ $# -ge 2 ] || die "--prefix wants a directory"; prefix=$2; shift ;;
	--prefix=*) prefix=${1#--prefix=} ;;
	--uninstall) uninstall=1 ;;
	-h | --help) usage 0 ;;
	-*) usage 2 >&2 ;;
	*) [ -z "$archive" ] || die "one archive at a time"; archive=$1 ;;
	esac
	shift
done
case $prefix in
/*) ;;
*) die "the prefix must be an absolute path, not '$prefix'" ;;
esac
manifest=$prefix/share/ttmon/installed

# The names in the manifest are relative, and were checked when it was written.
remove_installed() {
	[ -f "$manifest" ] || return 0
	while IFS= read -r name; do rm -f "$prefix/$name"; done <"$manifest"
	sort -r "$manifest" | while IFS= read -r name; do
		while case $name in */*) ;; *) false ;; esac do
			name=${name%/*}
			rmdir "$prefix/$name" 2>/dev/null || break # somebody else has files there
		done
	done
	rm -f "$manifest"
	rmdir "$prefix/share/ttmon" "$prefix/share" 2>/dev/null || true
}

if [ -n "$uninstall" ]; then
	[ -f "$manifest" ] || die "nothing is installed in $prefix"
	remove_installed
	echo "ttmon is gone from $prefix"
	exit 0
fi

case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) die "there is no release for $(uname -m)" ;;
esac
if [ -z "$archive" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	set -- "$here"/ttmon_*_linux_$arch.tar.gz
	[ $# -eq 1 ] && [ -f "$1" ] || die "which archive? Beside this script there is not just one ttmon_*_linux_$arch.tar.gz"
	archive=$1
fi
[ -f "$archive" ] || die "there is no $archive"
case ${archive##*/} in
*_linux_$arch.tar.gz) ;;
*) die "${archive##*/} is not for this machine, which is $arch" ;;
esac

directory=$(cd "$(dirname "$archive")" && pwd)
sums=$directory/SHA256SUMS
[ -f "$sums" ] || die "no SHA256SUMS beside $archive: download it too"
want=$(awk -v name="${archive##*/}" '$2 == name || $2 == "*" name { print $1 }' "$sums")
[ -n "$want" ] || die "SHA256SUMS does not know ${archive##*/}"
got=$(sha256sum "$archive" | cut -d ' ' -f 1)
[ "$got" = "$want" ] || die "${archive##*/} is damaged or not the released one: its SHA-256 is $got, SHA256SUMS says $want"

mkdir -p "$prefix"
work=$(mktemp -d "$prefix/.ttmon-install-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tar -xzf "$archive" -C "$work" --strip-components=1 --no-same-owner
(cd "$work" && find . ! -type d | sed 's#^\./##' | sort) >"$work.list"
mv "$work.list" "$work/.list"
grep -q '^bin/ttmon$' "$work/.list" || die "${archive##*/} holds no ttmon"

remove_installed # an earlier version may have had more files
while IFS= read -r name; do
	mkdir -p "$prefix/$(dirname "$name")"
	# In one step: a program that runs keeps its own file.
	mv -f "$work/$name" "$prefix/$name"
done <"$work/.list"
mkdir -p "${manifest%/*}"
mv -f "$work/.list" "$manifest"

echo "installed in $prefix: $("$prefix/bin/ttmon" --version)"
case :${PATH:-}: in
*:"$prefix/bin":*) ;;
*) echo "add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
