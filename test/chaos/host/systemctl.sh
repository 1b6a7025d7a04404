#!/bin/sh
# A replacement for systemctl on nodes that share a process. It runs in the root folder of the node, which has one unit. The unit
# runs with the content of /etc at its last start, which is stored next to the root folder.
LC_ALL=C
export LC_ALL
[ "$1" = --no-pager ] && shift
case "$1" in
  is-system-running) echo running ;;
  show) printf '%s\n' LoadState=loaded ActiveState=active UnitFileState=enabled Type=simple Result=success NeedDaemonReload=no ;;
  restart)
    cat etc/*.conf > "../runs.$$" 2>/dev/null
    mv "../runs.$$" ../runs ;;
  *) echo "this replacement for systemctl does not support $1" >&2; exit 1 ;;
esac
