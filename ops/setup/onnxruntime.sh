#!/usr/bin/env bash
# Puts libonnxruntime, taken out of its Python wheel, into a folder, with its licence:
#
#   onnxruntime.sh VENV FOLDER [openvino]
#
# With openvino it is the build that predicts by OpenVINO, with the libraries that it
# loads. Versions are pinned and the wheel's sha256 is checked.
set -euo pipefail
venv=$1
folder=$2
kind=${3:-plain}

arch=$(uname -m)
case "$kind $arch" in
  "plain x86_64") name=onnxruntime version=1.31.1 sum=5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f ;;
  "plain aarch64") name=onnxruntime version=1.31.1 sum=da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3 ;;
  "openvino x86_64") name=onnxruntime-openvino version=1.24.1 sum=3007c803634cc69c6d52af1dea7ce729d9bb62b9a11070fd2f959119199007a8 ;;
  *) echo "no pinned libonnxruntime ($kind) for $arch: set LACUNA_ONNXRUNTIME to the path of one >= 1.24" >&2; exit 1 ;;
esac
members=("libonnxruntime.so.$version")
[ "$kind" = plain ] || members+=(libonnxruntime_providers_shared.so libonnxruntime_providers_openvino.so
  libopenvino.so.2541 libopenvino_intel_cpu_plugin.so libopenvino_onnx_frontend.so.2541 libtbb.so.12)

library="$folder/${members[0]}"
notices="$folder/LICENSE"
[ ! -f "$library" ] || [ ! -f "$notices" ] || exit 0

echo "installing libonnxruntime $version ($kind) into $folder"
mkdir -p "$folder"
wheels=$(mktemp -d "$folder/wheel.XXXXXX")
trap 'rm -rf "$wheels"' EXIT
# The wheel of one Python version is asked for whatever Python runs here: the
# library inside does not depend on it, and one wheel has one checksum.
"$venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --platform "manylinux_2_28_$arch" --python-version 3.11 --implementation cp --abi cp311 \
  --dest "$wheels" "$name==$version"
wheel=$(echo "$wheels"/*.whl)
echo "$sum  $wheel" | sha256sum --check --quiet || {
  echo "the wheel of $name $version is not the one that was pinned: it was not installed" >&2
  exit 1
}
mkdir "$wheels/library"
"$venv/bin/python" - "$wheel" "$wheels/library" "${members[@]}" <<'EOF'
import sys, zipfile
wheel, out, *members = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    for member in members:
        open(f"{out}/{member}", "wb").write(z.read(f"onnxruntime/capi/{member}"))
    open(out + ".txt", "wb").write(z.read("onnxruntime/LICENSE") + b"\n" + z.read("onnxruntime/ThirdPartyNotices.txt"))
EOF
mv "$wheels/library.txt" "$notices"
# The library itself comes last: with it the folder is complete.
for member in "${members[@]:1}" "${members[0]}"; do mv "$wheels/library/$member" "$folder/$member"; done
ln -sfn "${members[0]}" "$folder/libonnxruntime.so"
