#!/usr/bin/env bash
# Makes the release that daemon/version/version.go names, from the commit that is checked
# out: make release.
#
# The tree must be as committed and CHANGELOG.md must have a section for the
# version, with a date. Then make test; the program, the Debian package, the OCI
# image, the wheel, the bill of materials and the licences go to bin/release/ with
# their SHA256SUMS; and the tag comes last, so that a commit that does not build is
# never tagged. Nothing is pushed.
set -euo pipefail

fail() {
  echo "release: $*" >&2
  exit 1
}
as_committed() { [ -z "$(git status --porcelain)" ] || fail "the tree is not as committed: commit or remove
$(git status --short)"; }

version=$(sed -n 's/^const release = "\(.*\)"$/\1/p' daemon/version/version.go)
[ -n "$version" ] || fail "daemon/version/version.go has no line: const release = \"...\""
tag=v$version
as_committed
! git rev-parse -q --verify "refs/tags/$tag" >/dev/null ||
  fail "there is a tag $tag already: raise the number in daemon/version/version.go"
grep -qE "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
  fail "CHANGELOG.md has no section: ## [$version] - $(date -u +%F)"

make lint test # the first installs the linter, so that the second uses it
as_committed # tests may leave something behind, and that would be in the program

out=bin/release
rm -rf "$out" bin/lacuna_*.deb bin/lacuna_*.oci.tar bin/lacuna-*.whl
make TAG="$tag" BUILDFLAGS=-trimpath build deb image wheel sbom
said=$(bin/lacuna version | awk '{print $2}')
[ "$said" = "$version" ] || fail "the program says that it is $said"
mkdir -p "$out"
cp bin/lacuna "$out/lacuna"
cp "bin/lacuna_${version}_"*.deb "bin/lacuna_${version}_"*.oci.tar "bin/lacuna-$version-"*.whl "$out/"
cp bin/lacuna.cdx.json bin/lacuna.licences.txt "$out/"
(cd "$out" && sha256sum -- * >SHA256SUMS)

git tag -a "$tag" -m "Lacuna $version"
echo "$tag is tagged and lies in $out; publish it with: git push origin $tag"
