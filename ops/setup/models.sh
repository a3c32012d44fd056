#!/usr/bin/env bash
# Trains the starter models: models.sh LACUNA DATA OUTDIR
#
# Each is trained on every sea of the real data, each in units of its own spread:
# those of its quantity judge it, and the others are learned from beside them,
# with either sign. DATA is the folder of the granules or one of packs that
# seas.sh made of them, which is all that a machine with a GPU needs. A starter is
# written to OUTDIR as a tar file that is built into the program by the next make
# build. A small imputer with tiny members stays below 10 MB. 'lacuna lab seas'
# tells how such networks do on seas that they never saw: ELSEWHERE names the
# elsewhere.json that it writes, for the cards.
#
# Minutes on a GPU, many hours on a processor: STEPS_DIV=10 trains a tenth of the
# steps. BUDGET=500 ends after so many seconds with a checkpoint and status 3; the
# same command goes on, as after a kill. MODELS="sst" trains that one only.
# CHL, SST and EXTRA hold further arguments of lacuna train for the one, the other
# and both, such as --size base.
set -euo pipefail

lacuna=$1 data=$2 out=$3
store=${STORE:-var/starters}
div=${STEPS_DIV:-1}
[[ -d $data ]] || { echo "models: there is no $data: the starters are trained on the real data there" >&2; exit 1; }
packs=$data
if ! compgen -G "$data/*.pack" >/dev/null; then
  packs=$store/packs
  "$(dirname "$0")/seas.sh" "$lacuna" "$data" "$packs"
fi

newest() { # the version of a starter that was written last; nothing: there is none
  [[ -d $store ]] || return 0
  "$lacuna" models list --store "$store" --json | python3 -c '
import json, sys
rows = [r for r in json.load(sys.stdin) if r["dataset"] == sys.argv[1]]
print(rows[-1]["version"] if rows else "")' "starter-$1"
}

train() { # name, variable, steps of imputer and members, then further arguments
  local name=$1 variable=$2 steps=$(($3 / div)) members=$(($4 / div)) before budget=()
  shift 4
  [[ " ${MODELS:-chl sst} " == *" $name "* && ! -e $store/$name.done ]] || return 0
  if [[ -n ${BUDGET:-} ]]; then
    ((SECONDS < BUDGET)) || exit 3
    budget=(--time-budget "$((BUDGET - SECONDS))s")
  fi
  [[ -z ${ELSEWHERE:-} ]] || budget+=(--elsewhere "$ELSEWHERE")
  before=$(newest "$name")
  # shellcheck disable=SC2086 # EXTRA is a list of arguments
  "$lacuna" train --store "$store" --dataset "starter-$name" --var "$variable" --policy never \
    --size small --members-size tiny --strategy empirical --reliability-steps 0 \
    --steps "$steps" --members-steps "$members" "${budget[@]}" "$@" ${EXTRA:-} || status=$?
  if [[ $(newest "$name") == "$before" ]]; then # stopped, or failed for a reason that it has told
    [[ -z ${BUDGET:-} ]] || exit 3
    exit "${status:-1}"
  fi
  mkdir -p "$out"
  "$lacuna" models export "$(newest "$name")" --store "$store" -o "$out/$name.tar"
  touch "$store/$name.done"
}

chl=("$packs"/{pacific,atlantic,testregion}.pack)
sst=("$packs"/{florida,maine,alboran}.pack)

# The ten days of the Alboran Sea are too few for the gap of the chlorophyll seas.
# shellcheck disable=SC2086 # CHL and SST are lists of arguments
train chl CHL 5000 2500 "${chl[@]/#/--data=}" --beside="$packs/florida.pack" --beside="$packs/maine.pack" ${CHL:-}

[[ -n $(newest chl) ]] || "$lacuna" models import "$out/chl.tar" --store "$store"
# shellcheck disable=SC2086
train sst SST 1500 1000 --from "$(newest chl)" --gap-days 2 "${sst[@]/#/--data=}" "${chl[@]/#/--beside=}" ${SST:-}
