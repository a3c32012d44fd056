#!/usr/bin/env bash
# A student with a folder of granules and a second sensor, from a bare Debian.
. "$(dirname "$0")/steps.sh"
cd "$HOME"

step "Git and Python" <<'SH'
apt-get update -qq && apt-get install -y -qq --no-install-recommends git ca-certificates python3-venv >/dev/null
SH

step "The clone, and the program in a virtual environment" <<'SH'
git clone -q /srv/lacuna.git lacuna

python3 -m venv env && . env/bin/activate

pip install -q './lacuna/python[all]'

lacuna version
SH

step "A folder of granules, and one of them filled" <<'SH'
lacuna simulate -o aqua --days 14 --grid 60x80 --seed 3 | tail -1

lacuna inspect aqua/20240413_*.nc | sed -n '1,6p'

lacuna init --dir aqua --name my-sea --fill

python - <<'PY'
import glob, xarray
[seen], [made] = glob.glob("aqua/20240414_*.nc"), glob.glob("var/first/20240414_*_l4.nc")
seen, made = xarray.open_dataset(seen).CHL.squeeze(), xarray.open_dataset(made)
sea = (made.flags.squeeze().astype(int) & 1) == 0
value, sigma = made.CHL.squeeze(), made.CHL_uncertainty.squeeze()
assert value.where(sea).count() == sigma.where(sea).count() == sea.sum()
was = (seen.notnull() & sea).values
assert (value.values[was] == seen.values[was]).all()
print(f"{was.sum()} cells were observed and are as they were, {int(sea.sum()) - was.sum()} are filled, each has an uncertainty")
PY
SH
bar "From nothing to a granule of their own, filled" 300

step "A second sensor over the same sea, with a bias" <<'SH'
lacuna simulate -o terra --days 14 --grid 60x80 --seed 3 --sensor 1 --sensor-bias 0.15 --sensor-noise 0.08 | tail -1

cat >both.yaml <<'YAML'
state_dir: both
products_dir: both/products
datasets:
  - name: both
    sources:
      - name: aqua
        archive: {dir: aqua, settle: 0s, expect: {nothing: true}}
      - name: terra
        archive: {dir: terra, settle: 0s, expect: {nothing: true}}
YAML

lacuna check --config both.yaml

lacuna once --config both.yaml 2>once.log | grep -x '14 products, 0 granules set aside, 0 unfinished'

lacuna why 2024-04-10 --config both.yaml | sed -n '1,4p'
SH

step "Both in one map" <<'SH'
python - <<'PY'
import lacuna
sea = lacuna.open("both", at="both/products")
number = sea.CHL_source.astype(int) & 63
names = sea.CHL_source.attrs["flag_meanings"].split()
seen = {name: int((number == i).sum()) for i, name in enumerate(names) if name in ("aqua", "terra")}
assert sea.sizes["time"] == 14 and min(seen.values()) > 0, seen
print("cells observed in 14 days:", seen)
lacuna.plot(sea, "2024-04-10").savefig("map.png")
PY

test -s map.png
SH
