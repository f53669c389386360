# Runs as process 1 of its namespaces: $1 is the tree, $2 a directory for the
# layer above it. Nothing of this machine is in sight but its kernel.
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
cd "$2/root"
mount -t proc proc proc
# Kernel parameters are everybody's.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for node in null zero full random urandom tty fuse; do
	if [ -e /dev/$node ]; then touch dev/$node && mount --bind /dev/$node dev/$node; fi
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p .old
pivot_root . .old
umount -l .old
rmdir .old
echo node1 >/etc/hostname # systemd sets it
export container=lxc
exec /lib/systemd/systemd --system --unit=multi-user.target --log-target=console --crash-reboot=0
