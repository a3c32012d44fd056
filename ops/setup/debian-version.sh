#!/usr/bin/env bash
# Prints the version of a Debian package for a version of the program and, in
# digits, the time of its commit, which may be empty:
#
#   debian-version.sh 0.2.0-dev+gabc1234 20261117015100   prints 0.2.0~dev+git20261117015100.gabc1234
#
# A development version sorts before its release: to dpkg that is a tilde, where a
# hyphen would begin the revision of a package and sort after it. Commits sort by
# their time; their names do not.
set -euo pipefail

version=$1 time=${2:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?(\+[0-9A-Za-z.]+)?$ && $time =~ ^[0-9]*$ ]] || {
  echo "debian-version.sh: $version is not a version such as 0.2.0 or 0.2.0-dev+gabc1234, or $time no time in digits" >&2
  exit 1
}
[[ -z $time || $version != *+* ]] || version=${version/+/+git$time.}
echo "${version/-/\~}"
