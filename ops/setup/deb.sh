#!/usr/bin/env bash
# Builds a Debian package: deb.sh BINARY VERSION OUTDIR
#
# The package holds the program, its manual page, the systemd units and the
# configuration with every key at its default. libonnxruntime is not in it: it
# is found where pip, npm or an administrator put it.
set -euo pipefail

binary=$1 version=$2 out=$3
arch=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

install -D -m 755 "$binary" "$root/usr/bin/lacuna"
install -D -m 644 systemd/lacuna.service "$root/lib/systemd/system/lacuna.service"
install -D -m 644 systemd/lacuna-once.service "$root/lib/systemd/system/lacuna-once.service"
install -D -m 644 systemd/lacuna-once.timer "$root/lib/systemd/system/lacuna-once.timer"
install -D -m 644 systemd/gpu.conf "$root/usr/share/doc/lacuna/gpu.conf"
install -D -m 644 systemd/lacuna.sysusers "$root/usr/share/doc/lacuna/lacuna.sysusers"
install -D -m 644 systemd/lacuna.tmpfiles "$root/usr/lib/tmpfiles.d/lacuna.conf"
install -D -m 644 systemd/lacuna.yaml "$root/etc/lacuna/lacuna.yaml"
install -D -m 644 LICENSE "$root/usr/share/doc/lacuna/copyright"
mkdir -p "$root/usr/share/man/man1"
"$binary" man | gzip -9n >"$root/usr/share/man/man1/lacuna.1.gz"

# A version of Debian begins with a digit and has no other hyphen than its own.
debian_version=$(sed -e 's/^v//' -e 's/-/+/g' <<<"$version")
[[ $debian_version =~ ^[0-9] ]] && [[ $debian_version == *.* ]] || debian_version="0~$debian_version"

# What the program is linked with, by the packages that hold it.
mkdir -p "$root/DEBIAN" "$root/debian"
depends=$(cd "$root" && printf 'Source: lacuna\nMaintainer: Lacuna\n\nPackage: lacuna\nArchitecture: any\nDescription: x\n' >debian/control &&
  dpkg-shlibdeps -O --ignore-missing-info usr/bin/lacuna 2>/dev/null | sed -n 's/^shlibs:Depends=//p') || depends="libc6, libnetcdf19"
rm -rf "$root/debian"

cat >"$root/DEBIAN/control" <<CONTROL
Package: lacuna
Version: $debian_version
Architecture: $arch
Maintainer: Lacuna <lacuna@localhost>
Section: science
Priority: optional
Depends: ${depends:-libc6, libnetcdf19}, adduser
Recommends: ca-certificates
Description: gap-free satellite ocean maps
 A daemon that fills the gaps of satellite maps of chlorophyll, temperature or
 salinity as they arrive, and publishes NetCDF files and Kafka messages.
CONTROL
echo /etc/lacuna/lacuna.yaml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/postinst" <<'POST'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemd-tmpfiles --create lacuna.conf || true
  systemctl daemon-reload || true
else
  install -d -m 755 /etc/lacuna
  install -d -m 700 /etc/lacuna/credentials
fi
POST
cat >"$root/DEBIAN/postrm" <<'POST'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
POST
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/postrm"
mkdir -p "$out"
dpkg-deb --root-owner-group --build "$root" "$out/lacuna_${debian_version}_$arch.deb"
