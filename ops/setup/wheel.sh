#!/usr/bin/env bash
# Builds a wheel of the Python package that needs nothing but Python:
#
#   wheel.sh VENV BINARY LIBONNXRUNTIME LICENCES OUTDIR
#
# The program is in it with libonnxruntime and every shared library that the two
# load, but for those that every Linux with its version of glibc has; the name of
# the wheel says which version that is. VENV has ops/setup/requirements-wheel.txt.
set -euo pipefail
venv=$1 binary=$(realpath "$2") runtime=$3 licences=$4 out=$(realpath "$5")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The folder is copied: a build leaves files beside the sources.
git ls-files python daemon/version | xargs cp --parents -t "$work"
mkdir "$work/beside"
cp -L "$runtime" "$work/beside/libonnxruntime.so"
cp "$licences" "$work/beside/licences.txt"
LACUNA_PROGRAM=$binary LACUNA_BESIDE=$work/beside LACUNA_VERSION=$("$binary" version | awk '{print $2}') \
  "$venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w "$work" "$work/python"
rm -f "$out"/lacuna-*.whl
PATH="$venv/bin:$PATH" "$venv/bin/python" -m auditwheel repair --plat auto -w "$out" "$work"/lacuna-*.whl
