#!/usr/bin/env bash
# The largest resident set of each command on fields, by their size:
# measure-memory.sh LACUNA DIR [SIDE...]
#
# Makes a simulated sea of each SIDE (256 512 1024) under DIR, 90 days of it or DAYS,
# runs the commands on it one after the other, and prints a row of a table for each, in
# MB with the pages of the program's own file that it reads, and the seconds that it took. Of a
# process and all that it starts the largest counts, not their sum. Two cores and no GPU
# are enough. A command that fails has no figure; what it said is in DIR/log. ONLY is a
# pattern of the rows to make.
set -euo pipefail

lacuna=$(realpath "$1")
mkdir -p "$2"
cd "$2"
shift 2
sides=("$@")
[[ $# -gt 0 ]] || sides=(256 512 1024)

declare -A cell known
rows=()
measure() { # the row, then a command
  local row=$1
  shift
  [[ $row =~ ${ONLY:-.} ]] || return 0
  [[ -v known[$row] ]] || rows+=("$row")
  known[$row]=yes
  if /usr/bin/time -o took -f '%M %e' "$@" >>log 2>&1; then
    read -r kb seconds < <(tail -n 1 took)
    cell[$row,$side]="$((kb / 1000)) (${seconds%.*} s)"
  else
    cell[$row,$side]=failed
  fi
  echo "$side $row: ${cell[$row,$side]}" >&2
}

for side in "${sides[@]}"; do
  days=${DAYS:-90} at=$side
  rm -rf "$at" && mkdir "$at"
  ONLY=. measure "simulate" "$lacuna" simulate -o "$at/sea" --days "$days" --grid "${side}x$side"
  granules=("$at"/sea/*.nc)
  last=${granules[-1]}
  measure "inspect" "$lacuna" inspect "$last"
  measure "fill by optimal interpolation, ten days before" "$lacuna" fill "$last" -o "$at/oi" --history "$at/sea" --past-days 10 --future-days 0 --model oi
  measure "fill by the starter, tier fast, ten days before" "$lacuna" fill "$last" -o "$at/starter" --history "$at/sea" --past-days 10 --future-days 0 --model starter --tier fast
  measure "pack" "$lacuna" pack --data "$at/sea" -o "$at/sea.pack"
  measure "evaluate, 100 overlays" "$lacuna" evaluate --data "$at/sea" --methods oi,persistence --mode past --overlays 100 --engine ort -o "$at/report"
  measure "scenes, two of them" "$lacuna" scenes --data "$at/sea" --model oi --scenes 2 --all-days
  measure "train, 10 steps" "$lacuna" train --data "$at/sea" --store "$at/store" --dataset sea --engine ort --size tiny --steps 10 --members-steps 10 --prior-steps 10 --reliability-steps 10 --teachers 0 --policy never
  measure "init and once, eleven days" bash -c "mkdir $at/few && ln ${granules[*]: -11} $at/few/ && cd $at &&
    '$lacuna' init --dir few --name sea -o sea.yaml && '$lacuna' once --config sea.yaml"
done

printf '| |'; printf ' %s² |' "${sides[@]}"; echo
printf '|---|'; printf '%s' "${sides[@]/*/---|}"; echo
for row in "${rows[@]}"; do
  printf '| `%s` |' "$row"
  for side in "${sides[@]}"; do printf ' %s |' "${cell[$row,$side]:-}"; done
  echo
done
