#!/usr/bin/env bash
# Tries a Debian package on a clean root: try-deb.sh DEB [NEWER.deb]
#
# Needs root, debootstrap and a Debian mirror. The root is made below
# LACUNA_CHROOT (default: a temporary folder, removed at the end) and used again
# where it is there. Installs, checks, fills simulated granules, upgrades to
# NEWER.deb (default: the same package again), removes and purges; any step
# that goes wrong ends it.
set -euo pipefail

deb=$1 newer=${2:-$1}
suite=${LACUNA_SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
root=${LACUNA_CHROOT:-$(mktemp -d)}
leave() {
  umount -q "$root/proc" "$root/sys" || true
  [ -n "${LACUNA_CHROOT:-}" ] || rm -rf --one-file-system "$root"
}
trap leave EXIT
[ -x "$root/usr/bin/dpkg" ] || debootstrap --variant=minbase "$suite" "$root" >/dev/null
# Files are written by way of /proc/self/fd, which every running system has.
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
rm -rf "$root/srv/lacuna-try" && mkdir -p "$root/srv/lacuna-try"
cp "$deb" "$root/srv/lacuna-try/first.deb"
cp "$newer" "$root/srv/lacuna-try/second.deb"
cat >"$root/srv/lacuna-try/lacuna.yaml" <<'YAML'
state_dir: /var/lib/lacuna
products_dir: /var/lib/lacuna/products
publish: {disk: {floor_mib: 1}}
datasets:
  - name: demo
    fill: {method: oi}
    archive: {dir: /srv/lacuna-try/archive, settle: 0s, disk_floor: 1MiB}
YAML

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
say() { printf '== %s\n' "$*"; }

say install
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends /srv/lacuna-try/first.deb >/dev/null 2>&1
inside lacuna version
inside lacuna engines | grep -q '^ort .* usable .* /usr/lib/lacuna/libonnxruntime.so'
inside dpkg --verify lacuna

say "the folders that tmpfiles promises"
[ "$(stat -c '%a %U' "$root/etc/lacuna/credentials")" = "700 root" ]
[ "$(stat -c '%a' "$root/etc/lacuna")" = 755 ]

say "the configuration with every key at its default, and ours"
inside lacuna check --config /etc/lacuna/lacuna.yaml
inside lacuna simulate -o /srv/lacuna-try/archive --days 3 --grid 40x60 >/dev/null
inside lacuna check --config /srv/lacuna-try/lacuna.yaml --online

say "three simulated granules"
inside lacuna once --config /srv/lacuna-try/lacuna.yaml 2>/dev/null | grep -x '3 products, 0 granules set aside, 0 unfinished'
inside lacuna status --config /srv/lacuna-try/lacuna.yaml | grep -q '^demo '
[ "$(find "$root/var/lib/lacuna/products/demo/2024" -name '*.nc' | wc -l)" = 3 ]

say "upgrade: a configuration that was edited stays, and nothing is done again"
echo '# edited' >>"$root/etc/lacuna/lacuna.yaml"
inside dpkg -i --force-confold /srv/lacuna-try/second.deb >/dev/null
tail -n 1 "$root/etc/lacuna/lacuna.yaml" | grep -qx '# edited'
inside lacuna once --config /srv/lacuna-try/lacuna.yaml 2>/dev/null | grep -x '0 products, 0 granules set aside, 0 unfinished'

say "remove: the configuration stays; purge: it goes, and the products stay"
inside dpkg --remove lacuna >/dev/null
[ ! -e "$root/usr/bin/lacuna" ] && [ -e "$root/etc/lacuna/lacuna.yaml" ]
inside dpkg --purge lacuna | grep 'holds products and books, and stays'
[ ! -e "$root/etc/lacuna" ] && [ -e "$root/var/lib/lacuna/products" ]
[ -z "$(inside dpkg -l lacuna 2>/dev/null | grep '^.[^n]' | grep ' lacuna ' || true)" ]
rm -rf "$root/var/lib/lacuna" "$root/srv/lacuna-try"
say "all is well"
