#!/usr/bin/env bash
# Makes the virtual environment that the checks and benchmarks use:
#
#   python.sh VENV [REQUIREMENTS-FILE]
#
# It does nothing where the environment already holds that requirements file.
set -euo pipefail
venv=$1
wanted=${2:-/dev/null}

if [ ! -x "$venv/bin/python" ]; then
  echo "making a Python environment in $venv"
  python3 -m venv "$venv"
fi
stamp="$venv/installed-$(basename "$wanted")"
if cmp -s "$wanted" "$stamp"; then
  exit 0
fi
if [ -s "$wanted" ]; then
  echo "installing into $venv: $(grep -v '^#' "$wanted" | tr '\n' ' ')"
  # Python compiles what is imported, when it is: a third of the time goes into the rest.
  "$venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check -r "$wanted"
fi
cp "$wanted" "$stamp"
