#!/usr/bin/env bash
# Fetches Apache Kafka brokers for make test-kafka into the cache, as ordinary Maven artifacts. It starts nothing: the test does.
#
#   deploy/setup/kafka.sh VERSION…        prints VERSION=FOLDER for each that could be had, says on stderr which could not
#
# Needs java and mvn. The cache is ${XDG_CACHE_HOME:-$HOME/.cache}/msgexchange or $MSGX_CACHE. Exit 1 when there is no broker at all.
set -euo pipefail

cache="${MSGX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/msgexchange}/kafka"

say() { printf 'setup: %s\n' "$*" >&2; }

for tool in java mvn; do
	command -v "$tool" >/dev/null || {
		say "no $tool found: install a JDK of 17 or later and Maven, or name a broker in MSGX_TEST_KAFKA"
		exit 1
	}
done

# fetch VERSION FOLDER: the broker's jar and what it needs.
fetch() {
	local work
	work=$(mktemp -d "$cache/fetch.XXXXXX")
	trap 'rm -rf "$work"' RETURN
	cat >"$work/pom.xml" <<-XML
		<project xmlns="http://maven.apache.org/POM/4.0.0">
		  <modelVersion>4.0.0</modelVersion>
		  <groupId>msgexchange</groupId><artifactId>test-kafka</artifactId><version>1</version>
		  <dependencies>
		    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$1</version></dependency>
		  </dependencies>
		</project>
	XML
	mvn --batch-mode --quiet --file "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/libs" >&2 || return 1
	mv -T "$work/libs" "$2"
}

mkdir -p "$cache"
had=0
for version; do
	folder="$cache/$version"
	if [ ! -d "$folder" ]; then
		say "fetching Kafka $version"
		fetch "$version" "$folder" || {
			say "Kafka $version cannot be had from the Maven repository in use: it will not be tested"
			continue
		}
	fi
	printf '%s=%s\n' "$version" "$folder"
	had=1
done
[ "$had" = 1 ] || exit 1
