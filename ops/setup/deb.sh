#!/usr/bin/env bash
# Builds a Debian package, of the version that the program says:
#
#   deb.sh BINARY LIBONNXRUNTIME LICENCES OUTDIR
#
# The package holds the program, its manual page and completions, the systemd
# units, the configuration with every key at its default, the alert rules, the
# dashboard, and libonnxruntime, which no Debian has as new as it must be, in a
# folder of its own. ops/setup/try-deb.sh tries the package on a clean root.
set -euo pipefail

binary=$1 runtime=$2 licences=$3 out=$4
version=$("$binary" version | awk '{print $2}')
arch=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

install -D -m 755 "$binary" "$root/usr/bin/lacuna"
install -D -m 644 "$runtime" "$root/usr/lib/lacuna/libonnxruntime.so"
install -D -m 644 "$licences" "$root/usr/share/doc/lacuna/licences.txt"
install -D -m 644 -t "$root/usr/lib/systemd/system" \
  systemd/lacuna.service systemd/lacuna-once.service systemd/lacuna-once.timer systemd/lacuna-worker@.service
install -D -m 644 systemd/lacuna.tmpfiles "$root/usr/lib/tmpfiles.d/lacuna.conf"
install -D -m 644 systemd/lacuna.yaml "$root/etc/lacuna/lacuna.yaml"
install -D -m 644 -t "$root/usr/share/doc/lacuna" systemd/gpu.conf systemd/network.conf systemd/lacuna.sysusers
install -D -m 644 LICENSE "$root/usr/share/doc/lacuna/copyright"
install -D -m 644 -t "$root/usr/share/doc/lacuna" CHANGELOG.md SECURITY.md
install -D -m 644 -t "$root/usr/share/lacuna/alerts" ops/alerts/lacuna.rules.yaml ops/alerts/lacuna.dashboard.json
mkdir -p "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions"
"$binary" man | gzip -9n >"$root/usr/share/man/man1/lacuna.1.gz"
"$binary" completion bash >"$root/usr/share/bash-completion/completions/lacuna"

# Of two packages of a development the one of the later commit is the newer.
debian_version=$("$(dirname "$0")/debian-version.sh" "$version" \
  "$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd 2>/dev/null || true)")

# The packages of the libraries that program and libonnxruntime are linked with;
# procps has the kill by which the unit reloads the service.
mkdir -p "$root/DEBIAN" "$root/debian"
depends=$(cd "$root" && printf 'Source: lacuna\nMaintainer: Lacuna\n\nPackage: lacuna\nArchitecture: any\nDescription: x\n' >debian/control &&
  dpkg-shlibdeps -O --ignore-missing-info usr/bin/lacuna usr/lib/lacuna/libonnxruntime.so 2>/dev/null | sed -n 's/^shlibs:Depends=//p') || depends=
rm -rf "$root/debian"

cat >"$root/DEBIAN/control" <<CONTROL
Package: lacuna
Version: $debian_version
Architecture: $arch
Maintainer: Lacuna <lacuna@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: procps, ${depends:-libc6, libdeflate0, libnetcdf19, libstdc++6}
Recommends: ca-certificates, tzdata
Suggests: prometheus
Description: gap-free satellite ocean maps
 A daemon that fills the gaps of satellite maps of chlorophyll, temperature or
 salinity as they arrive, and publishes NetCDF files and Kafka messages.
CONTROL
echo /etc/lacuna/lacuna.yaml >"$root/DEBIAN/conffiles"

# The service is neither enabled nor started: it first needs a dataset in its
# configuration. An upgrade restarts it where it runs; a granule in hand is
# finished first, and the ledger lasts through it.
cat >"$root/DEBIAN/postinst" <<'POST'
#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
if [ -d /run/systemd/system ]; then
  systemd-tmpfiles --create lacuna.conf || true
  systemctl daemon-reload || true
  [ -z "$2" ] || systemctl try-restart lacuna.service || true
else
  install -d -m 755 /etc/lacuna
  install -d -m 700 /etc/lacuna/credentials
fi
if [ -z "$2" ]; then
  echo "lacuna: edit /etc/lacuna/lacuna.yaml, try it with 'lacuna check --online', then 'systemctl enable --now lacuna'"
fi
POST
cat >"$root/DEBIAN/prerm" <<'PRE'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now lacuna-once.timer lacuna.service || true
fi
PRE
# Other people build on products: a purge leaves them, and says so.
cat >"$root/DEBIAN/postrm" <<'POST'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
if [ "$1" = purge ]; then
  rm -rf /etc/lacuna/credentials /var/cache/lacuna /var/cache/private/lacuna
  rmdir --ignore-fail-on-non-empty /etc/lacuna 2>/dev/null || true
  for state in /var/lib/private/lacuna /var/lib/lacuna; do
    if [ -e "$state" ] && ! rmdir "$state" 2>/dev/null; then
      echo "lacuna: $state holds products and books, and stays; remove it by hand"
    fi
  done
fi
POST
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" "$root/DEBIAN/postrm"
mkdir -p "$out"
# The models in the program are dense already: more effort buys minutes and no bytes.
dpkg-deb --root-owner-group -Z"${LACUNA_DEB_COMPRESSION:-xz}" -z1 --build "$root" "$out/lacuna_${debian_version}_$arch.deb"
