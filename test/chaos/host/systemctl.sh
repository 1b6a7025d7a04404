#!/bin/sh
# What stands for systemctl on nodes that share a process: it is run in the root of the node that is meant, and has one unit there,
# which runs with what lay in /etc when it was started last. That is kept next to the root.
LC_ALL=C
export LC_ALL
[ "$1" = --no-pager ] && shift
case "$1" in
  is-system-running) echo running ;;
  show) printf '%s\n' LoadState=loaded ActiveState=active UnitFileState=enabled Type=simple Result=success NeedDaemonReload=no ;;
  restart)
    cat etc/*.conf > "../runs.$$" 2>/dev/null
    mv "../runs.$$" ../runs ;;
  *) echo "this stand-in does not know $1" >&2; exit 1 ;;
esac
