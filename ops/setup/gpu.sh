#!/usr/bin/env bash
# Puts all that training and measuring on a GPU take into a folder: gpu.sh DATA OUTDIR
#
# For a machine that has a GPU, Python with JAX for CUDA and nothing else of ours: no
# Go, no NetCDF, no network. The folder has the program without its starters and the
# libraries that it loads (34 MB), and each sea in an archive of its own (17 MB in all),
# so that the seas which a measurement does not need can stay here. There:
#
#   . OUTDIR/unpack.sh                 # into /tmp/lacuna what is new, and the settings of XLA
#   lacuna lab seas -packs $PACKS -settings seas.json -engine xla:cuda -o seas
#   ops/setup/measure-gpu.sh measured  # what docs/results.md says of a GPU
#
# Optimal interpolation under the networks runs on processors: one training of many
# patches keeps sixteen of them busy for its first two minutes, so trainings that
# begin at the same time take as long as one after the other.
set -euo pipefail

data=$1 out=$2
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/lib" "$work/packs"

# A starter is large and not needed to train one.
root=$(cd "$here/../.." && pwd)
{
  echo '{"Replace": {'
  for tar in "$root"/modelstore/starters/versions/*.tar; do echo "\"$tar\": \"\","; done | sed '$s/,$//'
  echo '}}'
} >"$work/overlay.json"
(cd "$root" && go build -overlay "$work/overlay.json" -ldflags '-s -w' -o "$work/lacuna" ./daemon/cmd/lacuna)

# The C library and that of C++ are those of the machine there.
ldd "$work/lacuna" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libstdc\+\+|libgcc_s|libresolv|libpthread|libdl)\.so' |
  xargs -I{} cp -L {} "$work/lib/"
# 30 MB of tables of all writing systems that nothing here asks for.
for icu in "$work"/lib/libicudata.so.*; do
  [[ -e $icu ]] || continue
  version=${icu##*.}
  echo "const char icudt${version}_dat[64] = {0};" | gcc -shared -fPIC -x c - -Wl,-soname,"$(basename "$icu")" -o "$icu"
done
[[ -z ${LACUNA_ONNXRUNTIME:-} ]] || cp -L "$LACUNA_ONNXRUNTIME" "$work/lib/libonnxruntime.so"

tar -C "$work" -cf - lacuna lib | xz -T0 -6 >"$out/lacuna.tar.xz"

# Packs are compressed with gzip; by xz they take half of that.
"$here/seas.sh" "$work/lacuna" "$data" "$work/packs"
gunzip -S .pack "$work"/packs/*.pack
for pack in "$work"/packs/*; do xz -T0 -6 <"$pack" >"$out/$(basename "$pack").pack.xz"; done

# What XLA has found out about an H200: without it the first network of each kind
# takes up to three minutes to compile, with it seconds. It is of no use to another
# GPU or version of XLA, and does no harm there. To bring back what a run has added:
# tar -C $XDG_CACHE_HOME/lacuna/xla --exclude=programs -cJf tuning-h200.tar.xz .
cp "$here/tuning-h200.tar.xz" "$out/"

cat >"$out/unpack.sh" <<'EOF'
# Source this on the machine with the GPU.
export LACUNA_FOLDER=/tmp/lacuna PACKS=/tmp/lacuna/packs XDG_CACHE_HOME=/tmp/lacuna/cache
if [ ! -e $LACUNA_FOLDER/ready ]; then
  mkdir -p $PACKS $LACUNA_FOLDER/pjrt && tar -C $LACUNA_FOLDER -xJf "$(dirname "${BASH_SOURCE[0]}")/lacuna.tar.xz"
  mkdir -p $XDG_CACHE_HOME/lacuna/xla && tar -C $XDG_CACHE_HOME/lacuna/xla -xJf "$(dirname "${BASH_SOURCE[0]}")/tuning-h200.tar.xz"
  touch $LACUNA_FOLDER/ready
fi
for p in "$(dirname "${BASH_SOURCE[0]}")"/*.pack.xz; do
  to=$PACKS/$(basename "$p" .xz)
  [ ! -e "$p" ] || [ -e "$to" ] || (xz -dc <"$p" | gzip -1 >"$to.part" && mv "$to.part" "$to") &
done; wait
site=$(python3 -c 'import jax_plugins, os; print(os.path.dirname(list(jax_plugins.__path__)[0]))')
ln -sf "$(find "$site/jax_plugins" -name xla_cuda_plugin.so | head -1)" $LACUNA_FOLDER/pjrt/pjrt_c_api_cuda_plugin.so
export PJRT_PLUGIN_LIBRARY_PATH=$LACUNA_FOLDER/pjrt GOMLX_NO_AUTO_INSTALL=1 GOPJRT_CUDA_CHECKS=0
export XLA_FLAGS=--xla_gpu_cuda_data_dir=$(ls -d "$site/nvidia/cu13" /usr/local/cuda 2>/dev/null | head -1)
export LD_LIBRARY_PATH=$LACUNA_FOLDER/lib:$site/nvidia/cu13/lib:$site/nvidia/cudnn/lib:/usr/local/nvidia/lib64:${LD_LIBRARY_PATH:-}
export LACUNA_ONNXRUNTIME=$LACUNA_FOLDER/lib/libonnxruntime.so PATH=$LACUNA_FOLDER:$PATH
EOF
ls -la "$out"
