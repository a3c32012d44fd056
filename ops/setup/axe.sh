#!/usr/bin/env bash
# Puts axe-core, which looks for what keeps people from using a page, into a folder,
# with its licence (MPL-2.0; it is a tool of the tests and no part of the program):
#
#   axe.sh FOLDER
#
# The version is pinned and its sha256 is checked.
set -euo pipefail
folder=$1
version=4.14.0
sum=2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af

[ ! -f "$folder/axe-$version.min.js" ] || exit 0
command -v npm >/dev/null || { echo "npm, which fetches axe-core, is not installed" >&2; exit 1; }

echo "installing axe-core $version into $folder"
mkdir -p "$folder"
fresh=$(mktemp -d "$folder/fresh.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
(cd "$fresh" && npm pack --silent "axe-core@$version" >/dev/null)
echo "$sum  $fresh/axe-core-$version.tgz" | sha256sum --check --quiet || {
  echo "axe-core $version is not the one that was pinned: it was not installed" >&2
  exit 1
}
tar -xzf "$fresh/axe-core-$version.tgz" -C "$fresh" package/axe.min.js package/LICENSE
mv "$fresh/package/LICENSE" "$folder/LICENSE"
mv "$fresh/package/axe.min.js" "$folder/axe-$version.min.js"
