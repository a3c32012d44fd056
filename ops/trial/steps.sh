# What the three walks of ops/trial share; each of them sources it.
#
# What a walk prints is its section of docs/trial.md: the commands as they were
# typed, what they said, and how long each step took. The first command that fails
# ends it.
set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

began=$EPOCHREALTIME

# step TITLE runs the commands on its standard input, which a blank line parts, in
# this shell: a folder that one of them goes to is that of the next.
step() {
  local title=$1 all command from=$EPOCHREALTIME busy
  times >"$spent" # not in $(...), which has times of its own
  busy=$(processor)
  all=$(cat)
  printf '\n### %s\n\n```console-trial\n' "$title"
  while [ -n "$all" ]; do
    command=${all%%$'\n\n'*}
    all=${all#"$command"}
    all=${all#$'\n\n'}
    printf '$ %s\n' "$command"
    eval "$command" </dev/null 2>&1 || { printf '```\n\nThis failed: %s\n' "$command"; exit 1; }
  done
  times >"$spent"
  printf '```\n\n%s by the clock, %s of processors.\n' "$(span "$(since "$from")")" "$(span $(($(processor) - busy)))"
}

# skip TITLE says that a step is left out.
skip() { printf '\nNot walked this time: %s.\n' "$1"; }

# bar TEXT SECONDS says how long it took up to here, and ends a walk that took
# longer than that. BUSY=1 says that others keep the machine busy: then what the
# processors did, shared out among them, must be below the bar.
bar() {
  local clock busy cores
  times >"$spent"
  clock=$(since "$began") busy=$(processor) cores=$(nproc)
  printf '\n**%s: %s by the clock, %s of %d processors; the bar is %s.**\n' "$1" "$(span "$clock")" "$(span "$busy")" "$cores" "$(span "$2")"
  [ "$clock" -gt "$2" ] || return 0
  if [ "${BUSY:-}" = 1 ] && [ $((busy / cores)) -le "$2" ]; then
    printf '\nThe clock is over the bar. The machine was busy with other things.\n'
    return 0
  fi
  printf '\nIt took too long.\n'
  exit 1
}

# since prints the whole seconds since a moment.
since() { printf '%d' $(((${EPOCHREALTIME/./} - ${1/./} + 500000) / 1000000)); }

# processor prints the whole seconds that processors have worked for the commands
# so far; what systemd runs is not among them.
processor() { awk 'END {split($1, u, /[ms]/); split($2, s, /[ms]/); printf "%d", 60 * (u[1] + s[1]) + u[2] + s[2]}' "$spent"; }
spent=$(mktemp)

# span prints seconds as a person says them.
span() {
  if [ "$1" -lt 120 ]; then printf '%d s' "$1"; else printf '%d min %d s' $(($1 / 60)) $(($1 % 60)); fi
}
