#!/usr/bin/env bash
# Installs the Debian packages named on the command line that are missing:
#
#   packages.sh NAME=PROBE...
#
# PROBE is a command that succeeds where the package is there, so that an
# installation from another source is left alone. Without root or sudo it says
# what to install and exits 1.
set -euo pipefail

missing=()
for pair in "$@"; do
  if ! bash -c "${pair#*=}" >/dev/null 2>&1; then
    missing+=("${pair%%=*}")
  fi
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    echo "missing system packages: as root run: apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
fi
if ! command -v apt-get >/dev/null; then
  echo "missing, and there is no apt-get here: install ${missing[*]} (Debian names) by hand" >&2
  exit 1
fi

echo "installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
