#!/usr/bin/env bash
# Puts the jars of the Apache Kafka broker that the tests start into a folder:
#
#   broker.sh FOLDER
#
# They land in FOLDER/lib, which appears only when it is complete. It does
# nothing where FOLDER already holds the jars of this pom.xml. Java (17 or newer)
# and Maven must be there.
set -euo pipefail
folder=$1
pom="$(dirname "$0")/pom.xml"

if [ -d "$folder/lib" ] && cmp -s "$pom" "$folder/pom.xml"; then
  exit 0
fi

for tool in java mvn; do
  command -v "$tool" >/dev/null || {
    echo "$tool is not installed: as root run: apt-get install -y openjdk-17-jre-headless maven" >&2
    exit 1
  }
done

echo "fetching the Kafka broker for the tests into $folder"
mkdir -p "$folder"
fresh=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
mvn -B -q -f "$pom" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$fresh/lib"
rm -rf "$folder/lib" "$folder/classes.jsa"
mv "$fresh/lib" "$folder/lib"
cp "$pom" "$folder/pom.xml"
