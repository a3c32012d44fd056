#!/usr/bin/env bash
# Trains the starter models: models.sh LACUNA DATA OUTDIR
#
# Each is trained on the real files of a quantity, all regions together, and is
# written to OUTDIR as a tar file that is built into the program by the next
# make build. A small imputer with tiny members stays below 10 MB. On a GPU it
# takes minutes; on a processor, many hours: STEPS_DIV=10 trains a tenth of the
# steps. A run that was stopped goes on where it was.
#
# Only chlorophyll is trained unless MODELS says otherwise: the 41 days of sea
# surface temperature at hand make a network that is worse than optimal
# interpolation (by a fifth in the Gulf of Maine), and a starter must not be.
set -euo pipefail

lacuna=$1 data=$2 out=$3
store=${STORE:-var/starters}
div=${STEPS_DIV:-1}
[[ -d $data ]] || { echo "models: there is no $data: the starters are trained on the real data there" >&2; exit 1; }

train() { # name, steps of imputer and members, then further arguments
  [[ " ${MODELS:-chl} " == *" $1 "* ]] || return 0
  local name=$1 steps=$(($2 / div)) members=$(($3 / div))
  shift 3
  # shellcheck disable=SC2086 # further arguments for all trainings, such as --batch 8
  "$lacuna" train --store "$store" --dataset "starter-$name" --policy never ${EXTRA:-} \
    --size small --members-size tiny --strategy empirical --reliability-steps 0 \
    --steps "$steps" --members-steps "$members" "$@"
  local version
  version=$("$lacuna" models list --store "$store" --json | python3 -c '
import json, sys
rows = [r for r in json.load(sys.stdin) if r["dataset"] == sys.argv[1]]
print(rows[-1]["version"])' "starter-$name")
  "$lacuna" models export "$version" --store "$store" -o "$out/$name.tar"
}

train chl 3500 2500 \
  --data "$data/phytofit/pacific_modis_poly4_2021.nc" --data "$data/phytofit/pacific_modis_ocx_2020.nc" \
  --data "$data/phytofit/pacific_seawifs_gsmgs_2009.nc" --data "$data/phytofit/atlantic_modis_poly4_2021.nc"
train sst 2000 2000 --gap-days 2 \
  --data "$data/dineof_alboran/alboranSST_small.nc" --data "$data/bigelow_gom_sst/gom_modis_sst_daily_201808.nc"
