#!/usr/bin/env bash
# A modeller who reads a year of products by xarray, on a machine that has Python
# and the wheel.
. "$(dirname "$0")/steps.sh"
cd "$HOME"

step "Python, and the wheel" <<'SH'
apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates python3-venv >/dev/null

python3 -m venv env && . env/bin/activate

pip install -q "$(ls /srv/wheel/lacuna-*.whl)[all]"

lacuna version
SH
bar "From nothing to the program" 300

step "A year of a simulated sea, published as files and as a Zarr store" <<'SH'
lacuna simulate -o archive --days 365 --start 2024-01-01 --grid 32x48 --seed 5 | tail -1

cat >year.yaml <<'YAML'
state_dir: state
products_dir: products
publish: {zarr: {dir: zarr}}
datasets:
  - name: black-sea
    archive: {dir: archive, settle: 0s, expect: {nothing: true}}
    fill: {method: oi}
    daily_skill: false
YAML

lacuna once --config year.yaml 2>once.log | grep -x '365 products, 0 granules set aside, 0 unfinished'

lacuna publish status --config year.yaml
SH

step "The year, opened both ways" <<'SH'
python - <<'PY'
import time, lacuna, numpy
def read(at):
    began = time.perf_counter()
    year = lacuna.open("black-sea", at=at)
    chl = year.CHL.load()
    print(f"{at}: {dict(chl.sizes)} in {time.perf_counter() - began:.1f} s")
    return year, chl
files, from_files = read("products")
store, from_store = read("zarr")
assert files.sizes["time"] == store.sizes["time"] == 365
numpy.testing.assert_array_equal(from_files.values, from_store.values)
numpy.testing.assert_array_equal(files.flags.values, store.flags.values)
numpy.testing.assert_array_equal(files.time.values, store.time.values)
print("the same values, flags and times")
PY
SH

step "What a model takes from it: monthly means, and an error for each observation" <<'SH'
python - <<'PY'
import lacuna, numpy
sea = lacuna.open("black-sea", at="zarr")
water = (sea.flags.astype(int) & 1) == 0
assert bool((sea.CHL.notnull() == water).all()) and bool((sea.CHL_uncertainty.notnull() == water).all())
monthly = (10 ** numpy.log10(sea.CHL).groupby("time.month").mean(("time", "lat", "lon"))).round(2)
print("mg m-3 by month:", monthly.values.tolist())
filled = (sea.flags.astype(int) & 2) != 0
error = {"observed": sea.CHL_uncertainty.where(water & ~filled), "filled": sea.CHL_uncertainty.where(filled)}
error = {name: float(one.mean()) for name, one in error.items()}
assert error["observed"] < error["filled"], error
print("mean error in decades:", {name: round(one, 3) for name, one in error.items()})
april = lacuna.open("black-sea", "2024-04", at="zarr")
print("April has", april.sizes["time"], "days, the first made from", april.window_start.values[0].astype("M8[D]"), "to", april.window_end.values[0].astype("M8[D]"))
PY
SH
