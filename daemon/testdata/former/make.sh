#!/usr/bin/env bash
# Makes v0.1.tar.gz beside it: what a service of version 0.1 leaves on a disk, made
# by the program of that version. It is built from the history of this repository,
# which takes minutes; the result is committed, so nobody needs to run this again.
set -euo pipefail

commit=8c0adb2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

mkdir "$work/source" "$work/site"
(cd "$(git -C "$here" rev-parse --show-toplevel)" && git archive "$commit") | tar x -C "$work/source"

# A version of a model is only ever made by a training; the files of this one are
# not networks, for the store does not look into them.
mkdir "$work/source/daemon/cmd/former"
cat >"$work/source/daemon/cmd/former/main.go" <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"lacuna/modelstore"
)

func main() {
	store := modelstore.New(os.Args[1], func() time.Time { return time.Date(2024, 4, 1, 12, 0, 0, 0, time.UTC) })
	v, err := store.Write(context.Background(), modelstore.Card{Kind: "trained", Dataset: "sea", Variable: "CHL", Units: "mg m-3", Lacuna: "0.1",
		Networks: []modelstore.Network{{File: modelstore.ImputerFile, Backbone: "unet", Size: "tiny", Parameters: 1}}},
		map[string]io.Reader{modelstore.ImputerFile: strings.NewReader("no network")})
	if err != nil {
		panic(err)
	}
	fmt.Println(v.ID)
}
GO
(cd "$work/source" && go build -o "$work/lacuna" ./daemon/cmd/lacuna && go build -o "$work/former" ./daemon/cmd/former)

cd "$work/site"
cat >lacuna.yaml <<'YAML'
state_dir: state
products_dir: products
publish:
  quick_look: false
  retry_min: 10ms
  retry_max: 20ms
  disk: {floor_mib: 0}
  kafka: {brokers: ["127.0.0.1:1"]} # nobody is there: the deliveries wait
datasets:
  - name: sea
    archive: {dir: archive, poll_interval: 1s, settle: 0s}
    fill: {method: climatology, past_days: 3}
    reanalysis: {settle: 1ms}
YAML
"$work/lacuna" simulate -o later --days 4 --grid 16x24 --seed 3 --start 2024-04-01 >/dev/null
mkdir archive
next() { mv "$(find later -name '*.nc' | sort | head -1)" archive/; }
once() { "$work/lacuna" once --config lacuna.yaml 2>/dev/null || true; } # it fails, for no broker answers
next && next && once
next && echo "no granule" >archive/20240409_spoiled.nc && once
"$work/lacuna" redo 20240402_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D.nc --why asked --config lacuna.yaml
version=$("$work/former" models)
"$work/lacuna" models promote "$version" --store models --why tested >/dev/null
rm -f state/ledger.db.lock
tar c --format=posix --pax-option=delete=atime,delete=ctime --sort=name --owner=0 --group=0 --numeric-owner . | gzip -9n >"$here/v0.1.tar.gz"
