#!/bin/sh
# An external drainer in a few lines of shell: receives leases that need a drain, and reports when the node is drained.
# $1: the nats CLI. It connects to NATS_URL.
"$1" sub 'node.lease.granted.*.*' | while read -r line; do
  case "$line" in
    *'"kind":"drain"'*)
      node=$(printf '%s' "$line" | sed 's/.*"node":"\([^"]*\)".*/\1/')
      lease=$(printf '%s' "$line" | sed 's/.*"lease":"\([^"]*\)".*/\1/')
      # Repeat the request until there is an answer. Nothing else would, and the node would wait forever.
      until "$1" req --raw ops.node.drained "{\"node\":\"$node\",\"lease\":\"$lease\",\"evicted\":3,\"by\":\"drainer.sh\"}"; do
        sleep 1
      done
      ;;
  esac
done
