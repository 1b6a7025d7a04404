#!/bin/bash
# A real systemd as the first process of new namespaces. It sees the files of this machine, but writes to DIR/upper, so that the
# machine stays unchanged. It uses the kernel and the network of the machine. /proc/sys and /sys are read-only.
#   namespace-node.sh run DIR FOLDER   runs it. `systemctl reboot` inside restarts it with another boot id and the same files.
#                                      `systemctl poweroff` ends it. FOLDER is /opt/sluice inside, read-only. DIR/pid has its first process.
#   namespace-node.sh exec DIR CMD...  runs a command inside
#   namespace-node.sh check DIR        checks whether this machine supports it. If not, prints why and exits with 1
# Files that are in DIR/upper before the first start belong to the node.
set -euo pipefail
verb=$1 dir=$2
shift 2
self=$(readlink -f "$0")
cgroups=/sys/fs/cgroup
[ -d $cgroups/unified ] && cgroups=$cgroups/unified
cgroup=$cgroups/sluice$(echo "$dir" | tr -c "[:alnum:]\n" -)
forget() { find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; }

# The first process of the new namespaces, until it becomes systemd.
inside() {
  mount --make-rprivate /
  mount -t overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/root"
  cd "$dir/root"
  mount -t proc proc proc
  mount --bind proc/sys proc/sys
  mount --bind "$dir/boot_id" proc/sys/kernel/random/boot_id
  mount -o remount,bind,ro proc/sys
  mount -t sysfs sysfs sys
  mount -t tmpfs -o mode=755 tmpfs run
  mount -t tmpfs tmpfs tmp
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  mount -o remount,bind,ro sys
  mount -t tmpfs -o mode=755 dev dev
  for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
  mkdir -p dev/pts dev/shm opt/sluice .old
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  mount -t tmpfs tmpfs dev/shm
  mount --bind "$1" opt/sluice
  mount -o remount,bind,ro opt/sluice
  pivot_root . .old
  umount -l /.old
  exec env -i container=sluice PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb /lib/systemd/systemd --log-target=journal --unit=sluice-node.target
}

case $verb in
  inside) inside "$@" ;;
  run)
    mkdir -p "$dir"/{upper,work,root} "$cgroup"
    # Killed processes leave their cgroup a moment later.
    first=
    trap 'kill -9 $first 2>/dev/null; for _ in $(seq 50); do forget && break; sleep 0.05; done' EXIT
    trap exit TERM INT
    while :; do
      # `exec` waits for the pid of this start. The previous pid may belong to another process now.
      rm -f "$dir/pid"
      cat /proc/sys/kernel/random/uuid > "$dir/boot_id"
      mkdir -p "$cgroup"
      (
        echo $BASHPID > "$cgroup/cgroup.procs"
        exec unshare --pid --mount --uts --ipc --cgroup --fork --kill-child "$self" inside "$dir" "$1"
      ) &
      # The only child of this shell.
      starter=$!
      until first=$(cat /proc/$starter/task/$starter/children 2>/dev/null) && [ -n "$first" ]; do kill -0 $starter && sleep 0.05; done
      first=${first% }
      # systemd does not answer before it listens on its socket.
      until [ "$(cat /proc/$first/comm)" = systemd ] && [ -S "/proc/$first/root/run/systemd/private" ]; do kill -0 $starter && sleep 0.05; done
      echo "$first" > "$dir/pid.new" && mv "$dir/pid.new" "$dir/pid"
      code=0
      wait $starter || code=$?
      rm -f "$dir/pid"
      forget || true
      # reboot(2) in a pid namespace ends its first process by SIGHUP, power-off by SIGINT.
      [ $code = 129 ] || exit 0
    done
    ;;
  check)
    [ "$(id -u)" = 0 ] || { echo 'only root may'; exit 1; }
    [ -x /lib/systemd/systemd ] || { echo 'there is no systemd to run'; exit 1; }
    [ -f $cgroups/cgroup.procs ] && [ -w $cgroups ] || { echo 'there are no cgroups of version 2'; exit 1; }
    mkdir -p "$dir"/{upper,work,root}
    # shellcheck disable=SC2016
    unshare --pid --mount --uts --ipc --cgroup --fork sh -c 'mount --make-rprivate / && mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"' sh "$dir" 2>/dev/null ||
      { echo 'this kernel or container gives no namespaces with an overlay of /'; exit 1; }
    ;;
  exec)
    for _ in $(seq 600); do [ -f "$dir/pid" ] && break; sleep 0.05; done
    exec nsenter -t "$(cat "$dir/pid")" -m -u -i -p -C -- "$@"
    ;;
esac
