#!/usr/bin/env bash
# Trains the starter models: models.sh LACUNA DATA OUTDIR
#
# Each is trained on the real files of a quantity, all regions together, and is
# written to OUTDIR as a tar file that is built into the program by the next
# make build. A small imputer with tiny members stays below 10 MB. Chlorophyll
# takes minutes on a GPU and many hours on a processor: STEPS_DIV=10 trains a
# tenth of the steps. A run that was stopped goes on where it was. MODELS="sst"
# trains that one only.
#
# Of sea surface temperature there are 41 days at hand, too few for a network
# that betters optimal interpolation. That starter begins with the one of
# chlorophyll, learns beside its files, and leaves the mean to optimal
# interpolation: it knows how far off that is. Minutes on a processor.
set -euo pipefail

lacuna=$1 data=$2 out=$3
store=${STORE:-var/starters}
div=${STEPS_DIV:-1}
[[ -d $data ]] || { echo "models: there is no $data: the starters are trained on the real data there" >&2; exit 1; }

newest() { # the version of a starter that was written last; nothing: there is none
  [[ -d $store ]] || return 0
  "$lacuna" models list --store "$store" --json | python3 -c '
import json, sys
rows = [r for r in json.load(sys.stdin) if r["dataset"] == sys.argv[1]]
print(rows[-1]["version"] if rows else "")' "starter-$1"
}

train() { # name, steps of imputer and members, then further arguments
  [[ " ${MODELS:-chl sst} " == *" $1 "* ]] || return 0
  local name=$1 steps=$(($2 / div)) members=$(($3 / div))
  shift 3
  # shellcheck disable=SC2086 # further arguments for all trainings, such as --batch 8
  "$lacuna" train --store "$store" --dataset "starter-$name" --policy never ${EXTRA:-} \
    --size small --members-size tiny --strategy empirical --reliability-steps 0 \
    --steps "$steps" --members-steps "$members" "$@"
  "$lacuna" models export "$(newest "$name")" --store "$store" -o "$out/$name.tar"
}

pacific=("$data"/phytofit/pacific_{modis_poly4_2021,modis_ocx_2020,seawifs_gsmgs_2009}.nc)
train chl 3500 2500 "${pacific[@]/#/--data=}" --data "$data/phytofit/atlantic_modis_poly4_2021.nc"

[[ -n $(newest chl) ]] || "$lacuna" models import "$out/chl.tar" --store "$store"
train sst 400 600 --from "$(newest chl)" --spread-only --batch 16 --gap-days 2 \
  --data "$data/dineof_alboran/alboranSST_small.nc" --data "$data/bigelow_gom_sst/gom_modis_sst_daily_201808.nc" \
  "${pacific[@]/#/--beside=}"
