#!/usr/bin/env bash
# Prints the version of a Debian package for a version of the program:
#
#   debian-version.sh 0.2.0-dev+gabc1234   prints 0.2.0~dev+gabc1234
#
# A development version sorts before its release: to dpkg that is a tilde, where a
# hyphen would begin the revision of a package and sort after it.
set -euo pipefail

version=$1
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?(\+[0-9A-Za-z.]+)?$ ]] || {
  echo "debian-version.sh: $version is not a version such as 0.2.0 or 0.2.0-dev+gabc1234" >&2
  exit 1
}
echo "${version/-/\~}"
