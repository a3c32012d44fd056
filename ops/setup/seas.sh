#!/usr/bin/env bash
# Packs every sea of the real data: seas.sh LACUNA DATA OUTDIR
#
# One file for each sea that is a series, named after it, for 'lacuna lab seas'
# and models.sh on a machine without the granules. All of them together take less
# than 30 MiB, with the values as they were read. A file that is there already is
# left alone.
set -euo pipefail

lacuna=$1 data=$2 out=$3
[[ -d $data ]] || { echo "seas: there is no $data: the packs are made of the real data there" >&2; exit 1; }
mkdir -p "$out"

pack() { # name, then the arguments of lacuna pack
  local name=$1
  shift
  [[ -s $out/$name.pack ]] || "$lacuna" pack "$@" -o "$out/$name.pack"
}

pack pacific --data="$data/phytofit/pacific_modis_poly4_2021.nc" --data="$data/phytofit/pacific_modis_ocx_2020.nc" \
  --data="$data/phytofit/pacific_seawifs_gsmgs_2009.nc"
pack atlantic --data="$data/phytofit/atlantic_modis_poly4_2021.nc"
pack testregion --data="$data/phytofit/testregion_365d.nc"
pack florida --data="$data/florida_modis_sst/florida_modis_sst_2023.nc"
pack maine --data="$data/bigelow_gom_sst/gom_modis_sst_daily_201808.nc"
pack alboran --data="$data/dineof_alboran/alboranSST_small.nc"
# Values near 6e-5 mg m-3 are no chlorophyll but where the algorithm gave up.
pack northsea --data="$data/xcube_olci_northsea/olci_chl_300m_5d.nc" --valid-range=0.01,200
