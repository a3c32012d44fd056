#!/usr/bin/env bash
# Builds every fuzz target into a folder that runs on a machine without Go:
#
#   fuzzers.sh FOLDER
#
# A program for each package lies with the corpus of the package where the package
# lies in the sources. The shared libraries that they load, but for those of every
# Linux, are in lib. The folder has a script:
#
#   run.sh TIME PARALLEL [TARGET...]
#
# TIME is a number of executions of each target (10000000x) or a time (60s). What it
# says of a target is in said/TARGET, and inputs that reached something new are in
# cache. An input that fails is in the testdata of its package: in the folder, or in
# the checkout that SOURCES names.
#
# What an input reaches is counted in our own code and in the parsers that it uses.
# go test -fuzz counts in every package of the program, and looks at all of these
# counters after each execution: with a database and three clients of Kafka in the
# program that takes ten times as long as the execution.
set -euo pipefail
folder=$(realpath -m "$1")
sources=(daemon fetch internal ledger modelstore ops pipeline publish)
counted=()
for package in lacuna/... encoding/json encoding/xml net/url net/textproto github.com/goccy/go-yaml/... github.com/jlaffaye/ftp golang.org/x/net/html; do
  counted+=("-gcflags=$package=-d=libfuzzer")
done
mkdir -p "$folder/lib" "$folder/said"
: >"$folder/targets"

grep -rlE --include='*_test.go' '^func Fuzz' "${sources[@]}" | xargs -n1 dirname | sort -u | while read -r dir; do
  mkdir -p "$folder/$dir"
  go test -c -vet=off -ldflags '-s -w' "${counted[@]}" -o "$folder/$dir/fuzz.test" "./$dir"
  rm -rf "$folder/$dir/testdata"
  [ ! -d "$dir/testdata" ] || cp -r "$dir/testdata" "$folder/$dir/"
  { ldd "$folder/$dir/fuzz.test" 2>/dev/null || true; } | awk '$3 ~ /^\// {print $3}' |
    { grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' || true; } | xargs -r cp -Lu -t "$folder/lib"
  grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | cut -c6- | sed "s|^|$dir |" >>"$folder/targets"
done

cat >"$folder/run.sh" <<'END'
#!/usr/bin/env bash
# Runs the fuzz targets of this folder, one after the other: run.sh TIME PARALLEL [TARGET...]
set -uo pipefail
cd "$(dirname "$0")"
top=$PWD time=$1 parallel=$2
shift 2
export LD_LIBRARY_PATH=$top/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
status=0
while read -r dir target; do
  [ $# -eq 0 ] || [[ " $* " == *" $target "* ]] || continue
  if (cd "${SOURCES:-$top}/$dir" && "$top/$dir/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.parallel "$parallel" \
    -test.fuzzminimizetime 10x -test.timeout 24h -test.fuzzcachedir "$top/cache/$dir") </dev/null >"said/$target" 2>&1; then
    echo "$target: $(grep execs "said/$target" | tail -1)"
  else
    echo "$target FAILED, see said/$target: $(tail -3 "said/$target" | tr '\n' ' ')"
    status=1
  fi
done <targets
exit $status
END
chmod +x "$folder/run.sh"
