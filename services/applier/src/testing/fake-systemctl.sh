#!/bin/sh
# A systemctl for specs: FAKE_STATE is its memory, units are below FAKE_ROOT. What a unit was last started with stands in `running/`.
# A unit with `ExecStart=/fails` fails to start, one with `/hangs` never answers.
set -u
units=$FAKE_ROOT/etc/systemd/system
mkdir -p "$FAKE_STATE/loaded" "$FAKE_STATE/running" "$FAKE_STATE/active" "$FAKE_STATE/enabled"
[ "$1" = --no-pager ] && shift
verb=$1; shift
for unit in "$@"; do :; done
[ "$verb" = show ] || [ "$verb" = is-system-running ] || echo "$verb $([ $# -gt 0 ] && echo "$unit")" | sed 's/ $//' >> "$FAKE_STATE/log"

loaded() { cat "$FAKE_STATE/loaded/$unit" "$FAKE_STATE/loaded/$unit.d"/*.conf 2>/dev/null; true; }
there() { cat "$units/$unit" "$units/$unit.d"/*.conf 2>/dev/null; true; }
begin() {
  case "$(loaded)" in
    '') echo "Unit $unit not found." >&2; exit 5 ;;
    *ExecStart=/hangs*) sleep 600 ;;
    *ExecStart=/fails*) echo failed > "$FAKE_STATE/active/$unit"; echo "Job for $unit failed." >&2; exit 1 ;;
  esac
  echo active > "$FAKE_STATE/active/$unit"
  loaded > "$FAKE_STATE/running/$unit"
}
reload_all() {
  rm -rf "$FAKE_STATE/loaded"; mkdir -p "$FAKE_STATE/loaded"
  [ -d "$units" ] && cp -R "$units/." "$FAKE_STATE/loaded/"
  return 0
}

case "$verb" in
  is-system-running) echo running ;;
  daemon-reload) reload_all ;;
  show)
    if [ -e "$units/$unit" ] || [ -e "$FAKE_STATE/loaded/$unit" ]; then echo LoadState=loaded; else echo LoadState=not-found; fi
    echo "ActiveState=$(cat "$FAKE_STATE/active/$unit" 2>/dev/null || echo inactive)"
    if [ -e "$FAKE_STATE/enabled/$unit" ]; then echo UnitFileState=enabled; elif grep -q '^\[Install\]' "$units/$unit" 2>/dev/null; then echo UnitFileState=disabled; else echo UnitFileState=static; fi
    echo Type=simple
    echo Result=success
    if [ -e "$FAKE_STATE/queued/$unit" ]; then echo Job=7; fi
    if [ "$(loaded)" = "$(there)" ]; then echo NeedDaemonReload=no; else echo NeedDaemonReload=yes; fi ;;
  start|restart) begin ;;
  reload) [ "$(cat "$FAKE_STATE/active/$unit" 2>/dev/null)" = active ] && loaded > "$FAKE_STATE/running/$unit" ;;
  stop) echo inactive > "$FAKE_STATE/active/$unit"; rm -f "$FAKE_STATE/running/$unit" ;;
  reset-failed) if [ "$(cat "$FAKE_STATE/active/$unit" 2>/dev/null)" = failed ]; then rm "$FAKE_STATE/active/$unit"; fi ;;
  enable) touch "$FAKE_STATE/enabled/$unit" ;;
  disable) rm -f "$FAKE_STATE/enabled/$unit" ;;
  # The machine goes down and up when the spec says so.
  reboot) echo asked > "$FAKE_STATE/reboot" ;;
  *) echo "Unknown command verb $verb." >&2; exit 1 ;;
esac
