#!/bin/sh
# Runs a program like a container: a file system that is read-only except for the mounts, the token of a service account where a kubelet puts it, and the given user and capabilities.
#   as-pod.sh check
#   as-pod.sh run SECRETS USER CAPABILITIES FOLDER=PLACE,… -- PROGRAM…      mounts each FOLDER at its PLACE, which must exist
set -e
if [ "$1" = check ]; then
  unshare --mount sh -c 'mount --make-rprivate / && mount -t tmpfs tmpfs /run && mount -o remount,bind,ro / 2>/dev/null || { mount --bind / / && mount -o remount,bind,ro /; }'
  setpriv --bounding-set -all --no-new-privs true
  exit 0
fi
if [ "$1" = run ]; then
  shift
  exec unshare --mount "$0" inside "$@"
fi
shift
secrets=$1 user=$2 capabilities=$3 folders=$4
shift 5
here=$(pwd)
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp "$secrets"/* /run/secrets/kubernetes.io/serviceaccount/
chmod -R a+rX /run/secrets
# Each is a separate mount, which stays writable when the root becomes read-only.
for pair in $(echo "$folders" | tr , ' '); do mount --bind "${pair%%=*}" "${pair#*=}"; done
for place in / /tmp /var /home /run; do
  if [ "$place" = / ] || mountpoint -q "$place"; then mount -o remount,bind,ro "$place" 2>/dev/null || mount -o remount,ro "$place"; fi
done
cd "$here"
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --inh-caps -all --bounding-set "$capabilities" "$@"
