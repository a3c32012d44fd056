#!/usr/bin/env bash
# Puts libonnxruntime, taken out of its Python wheel, into a folder, with its licence:
#
#   onnxruntime.sh VENV FOLDER
#
# The version is pinned and the wheel's sha256 is checked.
set -euo pipefail
venv=$1
folder=$2
version=1.31.1

library="$folder/libonnxruntime.so.$version"
notices="$folder/LICENSE"
[ ! -f "$library" ] || [ ! -f "$notices" ] || exit 0

arch=$(uname -m)
case "$arch" in
  x86_64) sum=5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f ;;
  aarch64) sum=da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3 ;;
  *) echo "no pinned libonnxruntime for $arch: set LACUNA_ONNXRUNTIME to the path of one >= 1.24" >&2; exit 1 ;;
esac

echo "installing libonnxruntime $version into $folder"
mkdir -p "$folder"
wheels=$(mktemp -d "$folder/wheel.XXXXXX")
trap 'rm -rf "$wheels"' EXIT
# The wheel of one Python version is asked for whatever Python runs here: the
# library inside does not depend on it, and one wheel has one checksum.
"$venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --platform "manylinux_2_28_$arch" --python-version 3.11 --implementation cp --abi cp311 \
  --dest "$wheels" "onnxruntime==$version"
wheel=$(echo "$wheels"/*.whl)
echo "$sum  $wheel" | sha256sum --check --quiet || {
  echo "the wheel of onnxruntime $version is not the one that was pinned: it was not installed" >&2
  exit 1
}
"$venv/bin/python" - "$wheel" "$wheels/library" "onnxruntime/capi/libonnxruntime.so.$version" <<'EOF'
import sys, zipfile
wheel, out, member = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    open(out, "wb").write(z.read(member))
    open(out + ".txt", "wb").write(z.read("onnxruntime/LICENSE") + b"\n" + z.read("onnxruntime/ThirdPartyNotices.txt"))
EOF
mv "$wheels/library.txt" "$notices"
mv "$wheels/library" "$library"
ln -sfn "$(basename "$library")" "$folder/libonnxruntime.so"
