#!/usr/bin/env bash
# Measures what docs/results.md says of a GPU: measure-gpu.sh OUTDIR [PART...]
#
# For the machine that gpu.sh packs for, after its unpack.sh. PART is one of
#
#   compile    the training step of a base network, by what is known of the card and without
#   finetune   a base network fine-tuned from a parent, with its gate, alone on the machine
#   daily      a service with nothing but defaults fills a daily sea of 790×1101: tier, and granules an hour
#   backfill   the same sea by a backfill, whose stages overlap: granules an hour, and the share of the slowest stage
#   basin      the tiers on such a sea, and how long members take
#   roofline   how far each stage is from what the machine can do
#
# and without any it is all of these, or one of the tables, which are only made where
# they are named:
#
#   prior      draws of the mask prior, guided and not, and the likelihood of masks
#   seas       a network on each sea that it did not learn from
#   PLAN       a plan of pipeline/lab/jobs/plans (pacific, recipe, paper...), or some of
#              its jobs: PLAN:JOB,...
#   tables     those of docs/results.md: pacific and seas at a time, then the others
#
# Each part leaves OUTDIR/PART.log and a line in OUTDIR/log, a table a folder besides; a
# part that is done is passed over, and so is a row of a table, so that the same command
# goes on, after DEADLINE (540 seconds) too; only prior begins again. ENGINE, SIZE, GRID,
# DAYS and STEPS make it smaller, to try it on a processor, and OVERLAYS the seas; TRY=yes
# takes networks for tables whose figures mean nothing.
set -euo pipefail

out=$1
shift
[[ -n ${PACKS:-} ]] || { echo "measure-gpu: PACKS is not set: source unpack.sh first" >&2; exit 2; }
parts=("$@")
[[ $# -gt 0 ]] || parts=(compile finetune daily backfill basin roofline)
here=$(cd "$(dirname "$0")" && pwd)
engine=${ENGINE:-xla:cuda} size=${SIZE:-base} grid=${GRID:-790x1101} days=${DAYS:-20} steps=${STEPS:-1000}
end=$(($(date +%s) + ${DEADLINE:-540})) plans=$here/../../pipeline/lab/jobs/plans
mkdir -p "$out"
cd "$out"
out=$PWD

left() { # seconds to the deadline
  local seconds=$((end - $(date +%s)))
  echo $((seconds > 1 ? seconds : 1))
}

say() { echo "$(date +%T) $*" | tee -a log; }

timed() { # name of the log, then a command: its lines with the seconds since its start
  local log=$1 began=${EPOCHREALTIME/[.,]/} tenths
  shift
  "$@" 2>&1 | while IFS= read -r line; do
    tenths=$(((${EPOCHREALTIME/[.,]/} - began) / 100000))
    echo "$((tenths / 10)).$((tenths % 10)) $line"
  done >>"$log"
}

compile() {
  local step=(lacuna lab steps -engine "$engine" -size "$size" -dtype bfloat16 -steps 5 -forward=false -batch 256)
  timed compile.log "${step[@]}" -cache "$PWD/tuning"
  timed compile.log "${step[@]}" -cache "$PWD/tuning"
}

# The parent is of few steps: how long the fine-tune takes does not depend on it.
finetune() {
  local train=(lacuna train --data "$PACKS/pacific.pack" --var CHL --store store --dataset pacific --engine "$engine" --stride 24 --json-lines)
  if [[ ! -e parent.done ]]; then
    timed parent.log "${train[@]}" --size "$size" --steps "$steps" --members-steps "$((steps / 2))" --teachers 0
    touch parent.done
  fi
  timed finetune.log "${train[@]}" --from "$(version 0)" --refit-prior
  say "$(tail -n 1 finetune.log)"
  lacuna models show "$(version -1)" --store store | grep -E '^(phases|memory)' | tee -a log
}

version() { lacuna models list --store store --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[int(sys.argv[1])]["version"])' "$1"; }

# The starter is the champion of a dataset of its own name: the program that gpu.sh
# packs has none inside.
daily() {
  if [[ ! -e daily.yaml ]]; then
    rm -rf archive var
    lacuna simulate -o archive --days "$days" --grid "$grid" >/dev/null
    lacuna models import "$here/../../modelstore/starters/versions/chl.tar" --store var/models
    lacuna models promote starter-chl --store var/models --why 'measured on a GPU'
    lacuna init --dir archive --name starter-chl -o daily.yaml
  fi
  timed daily.log lacuna once --config daily.yaml
  say "$(tail -n 1 daily.log)"
  # The first product waits for programs to be compiled, on a machine that has never
  # done so; that of backfill finds them.
  say "$(awk '/msg="product stored"/ {if (!n++) first = $1; last = $1}
    END {if (last > first) printf "first product after %.1f s, then %d granules an hour", first, 3600 * (n - 1) / (last - first)}' daily.log)"
  lacuna why --config daily.yaml "$(basename "$(ls archive/*.nc | tail -n 1)")" | tee -a log
  for granule in archive/*.nc; do
    lacuna why --config daily.yaml "$(basename "$granule")" | grep -o 'tier [a-z]*' | tail -n 1 || true
  done | sort | uniq -c | tee -a log # products by tier
}

# The sea of daily once more, in a state of its own. Of each stage the mean is taken over
# all products but the first, which waits for programs to be compiled: no more than
# 3600 / the slowest of them can be made in an hour. Without a GPU analysis and network
# are one stage: both have all processors.
backfill() {
  [[ -e daily.yaml ]] || { echo "measure-gpu: backfill is of the sea of daily: run that first" >&2; exit 2; }
  sed -E '/^(state|products)_dir:/s|/var|/backfill|' daily.yaml >backfill.yaml
  local all=(archive/*.nc) first last
  first=$(basename "${all[0]}") last=$(basename "${all[-1]}")
  timed backfill.log lacuna backfill --config backfill.yaml --debug --from "${first:0:4}-${first:4:2}-${first:6:2}" --to "${last:0:4}-${last:4:2}-${last:6:2}"
  say "$(awk '
    /msg="product stored"/ {if (!n++) first = $1; last = $1}
    /msg="engine chosen"/ && / engine=ort / {shared = 1}
    /msg="job done"/ && jobs++ {for (i = 2; i <= NF; i++) if (split($i, v, "=") == 2 && v[1] ~ /^(analysis|network|writing)$/) sum[v[1]] += v[2]}
    END {
      if (n < 2) exit 1
      if (shared) {sum["analysis and network"] = sum["analysis"] + sum["network"]; delete sum["analysis"]; delete sum["network"]}
      for (s in sum) {mean = sum[s] / (jobs - 1); printf "%s %.2f s, ", s, mean; if (mean > slowest) slowest = mean}
      rate = 3600 * (n - 1) / (last - first)
      printf "first product after %.1f s, then %d granules an hour, %d %% of the slowest stage", first, rate, 100 * rate * slowest / 3600
    }' backfill.log)"
}

basin() { timed basin.log lacuna lab basin -engine "$engine" -size "$size" -height "${grid%x*}" -width "${grid#*x}" -json; }

prior() { timed prior.log timeout "$(left)" lacuna lab prior -data "$PACKS/pacific.pack" -other "$PACKS/atlantic.pack" -parts unconditional,guided,likelihood -engine "$engine" -steps "$steps"; }

# The networks of starters are small.
seas() {
  echo "{\"design\": {\"size\": \"${SIZE:-small}\"}}" >seas.json
  timed seas.log lacuna lab seas -packs "$PACKS" -settings seas.json -steps "${STEPS:-4000}" -batch 256 ${OVERLAYS:+-overlays "$OVERLAYS" -choosing "$OVERLAYS"} -engine "$engine" -o seas -deadline "$(left)s"
  goes_on seas.log
}

# table makes the tables of a plan, PLAN or PLAN:JOB,..., whose data are named as if they
# lay beside it: the packs, and what the plan wants simulated besides.
table() {
  local plan=${1%%:*} only='' sea
  [[ $1 != *:* ]] || only=${1#*:}
  mkdir -p "$plan" data
  for sea in "$PACKS"/*.pack; do # other tables may be made beside, from the same links
    ln -s "$sea" data/ 2>/dev/null || [[ -e data/${sea##*/} ]]
  done
  for sea in $(grep -oE '"(nano|sss|simulated-[0-9]+)\.pack"' "$plans/$plan.json" | tr -d '"' | sort -u); do
    [[ -e data/$sea ]] || simulated "${sea%.pack}"
  done
  if grep -q '"simulated.onnx"' "$plans/$plan.json" && [[ ! -e data/simulated.onnx ]]; then
    table simulated-seas
    cp simulated-seas/networks/*.onnx data/simulated.onnx
  fi
  (cd data && timed "$out/$plan.log" lacuna lab jobs -plan "$plans/$plan.json" ${only:+-only "$only"} ${TRY:+-try} -engine "$engine" -o "$out/$plan" -deadline "$(left)s")
  goes_on "$plan.log"
}

simulated() { # the name of a sea, whose truth is known
  local what=(--product blk-chl --grid 96x128 --days 120 --seed "3${1#simulated-}")
  case $1 in
  nano) what=(--product bal-nano --days 365 --seed 11) ;;
  sss) what=(--product smos-sss --days 365 --seed 12) ;;
  esac
  rm -rf "simulated.$1"
  timed "simulated.$1.log" lacuna simulate -o "simulated.$1" "${what[@]}"
  timed "simulated.$1.log" lacuna pack --data "simulated.$1" -o "data/$1.part"
  mv "data/$1.part" "data/$1.pack"
  rm -r "simulated.$1"
}

# tables makes pacific and seas first, alone on the card but for each other: so they are
# done in 27 minutes of an H200. Both make 52 steps a second there, and 43 with the four
# plans of the paper beside them; bare steps of two processes are 88, and of one 70.
tables() {
  local failed=0
  ! command -v nvidia-cuda-mps-control >/dev/null || nvidia-cuda-mps-control -d || true # it may run already
  together pacific seas && together paper paper-data paper-sizes paper-settings 'prior datasets baselines' || failed=1
  ! command -v nvidia-cuda-mps-control >/dev/null || echo quit | nvidia-cuda-mps-control || true
  ((!failed)) || { say "tables: not all are made, the same command goes on"; exit 1; }
}

together() { # lists of parts, each in a process of its own; false: not all are made
  local lane part failed=0
  for lane; do
    # shellcheck disable=SC2086 # a lane is several words
    DEADLINE=$(left) "$here/measure-gpu.sh" "$out" $lane &
  done
  for lane; do wait -n || failed=1; done
  for part in $*; do
    [[ -e $part.done ]] || failed=1
  done
  ((!failed))
}

goes_on() { # ends here what met its deadline, before it counts as done
  if tail -n 3 "$1" | grep -q 'deadline met'; then
    say "$1: deadline met, the same command goes on"
    exit
  fi
}

roofline() { timed roofline.log lacuna lab roofline -engine "$engine" -size "$size"; }

for part in "${parts[@]}"; do
  [[ ! -e $part.done ]] || continue
  say "$part"
  if [[ -e $plans/${part%%:*}.json ]]; then table "$part"; else "$part"; fi
  touch "$part.done"
  say "$part is done"
done
