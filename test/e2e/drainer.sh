#!/bin/sh
# An external drainer in a few lines of shell: hears leases that ask for a drain, and says when the node is free.
# $1: the nats CLI. NATS_URL says where.
"$1" sub 'node.lease.granted.*.*' | while read -r line; do
  case "$line" in
    *'"kind":"drain"'*)
      node=$(printf '%s' "$line" | sed 's/.*"node":"\([^"]*\)".*/\1/')
      lease=$(printf '%s' "$line" | sed 's/.*"lease":"\([^"]*\)".*/\1/')
      "$1" req --raw ops.node.drained "{\"node\":\"$node\",\"lease\":\"$lease\",\"evicted\":3,\"by\":\"drainer.sh\"}"
      ;;
  esac
done
