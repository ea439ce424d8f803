#!/usr/bin/env bash
# Makes sure that PostgreSQL and, when asked, MariaDB are on this machine. It starts nothing: db/dbserver does, privately.
#
#   deploy/setup/servers.sh [postgres] [mariadb] [pgbouncer] [promtool] [cc]
#
# cc is the C compiler that go test -race needs, promtool what plays the alert rules' own tests.
#
# What is found is left alone. What is missing is installed from the system's packages as root, or unpacked by an ordinary
# user into root/ of the cache (${XDG_CACHE_HOME:-$HOME/.cache}/msgexchange or $MSGX_CACHE), where db/dbserver looks too. Otherwise: one sentence, exit 1.
set -euo pipefail

cache="${MSGX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/msgexchange}"
root="$cache/root"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
	say "$*"
	exit 1
}

# found SERVER: is it on the machine, in any of the places db/dbserver looks?
found() {
	local file
	case "$1" in
	postgres) set -- "$root"/usr/lib/postgresql/*/bin/postgres /usr/lib/postgresql/*/bin/postgres \
		/opt/homebrew/opt/postgresql*/bin/postgres /usr/local/opt/postgresql*/bin/postgres "$(command -v postgres || true)" ;;
	mariadb) set -- "$root"/usr/sbin/mariadbd /usr/sbin/mariadbd /usr/sbin/mysqld \
		/opt/homebrew/opt/mariadb*/bin/mariadbd /usr/local/opt/mariadb*/bin/mariadbd "$(command -v mariadbd || true)" ;;
	pgbouncer) set -- "$root"/usr/sbin/pgbouncer /usr/sbin/pgbouncer "$(command -v pgbouncer || true)" ;;
	promtool) set -- "$root"/usr/bin/promtool "$(command -v promtool || true)" ;;
	cc) set -- "$(command -v cc || command -v gcc || true)" ;;
	*) fail "unknown server $1" ;;
	esac
	for file; do [ -x "$file" ] && return; done
	return 1
}

# packages SERVER: what holds it on Debian and its children.
packages() {
	case "$1" in
	postgres) echo postgresql ;;
	mariadb) echo mariadb-server ;;
	pgbouncer) echo pgbouncer ;;
	cc) echo gcc libc6-dev ;;
	promtool) echo prometheus ;;
	esac
}

# install PACKAGE…: as root, with the system's own tool; the services the packages bring are not started.
install() {
	local policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update
	apt-get -qq install --yes --no-install-recommends "$@" >&2
}

# unpack PACKAGE…: as an ordinary user, with apt's lists and archives in our cache. apt itself says what the system lacks,
# libraries included.
unpack() {
	local apt="$cache/apt" deb verb name
	local get=(apt-get -qq -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt" -o Debug::NoLocking=true)
	mkdir -p "$apt"/{lists,archives}/partial "$root"
	"${get[@]}" update
	local plan lacking=()
	plan=$("${get[@]}" --simulate --no-install-recommends install "$@")
	while read -r verb name _; do
		if [ "$verb" = Inst ]; then lacking+=("$name"); fi
	done <<<"$plan"
	say "unpacking ${#lacking[@]} packages into $root"
	cd "$apt/archives"
	"${get[@]}" download "${lacking[@]}"
	for deb in *.deb; do dpkg-deb --extract "$deb" "$root"; done
	rm -rf "$apt"
}

# get PACKAGE…: as whoever we are, in a shell of its own.
get() {
	command -v apt-get >/dev/null || return
	if [ "$(id -u)" = 0 ]; then (install "$@"); else (unpack "$@"); fi
}

missing=() wanted=()
for server; do
	if found "$server"; then continue; fi
	if [ "$server" = cc ] && [ "$(id -u)" != 0 ]; then
		say "no C compiler found: tests will run without the race detector"
		continue
	fi
	if [ "$server" = pgbouncer ] || [ "$server" = promtool ]; then
		get "$(packages "$server")" || true
		found "$server" || say "no $server: what needs it is not tested here"
		continue
	fi
	missing+=("$server")
	read -ra names < <(packages "$server")
	wanted+=("${names[@]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || fail "please install ${missing[*]}: not found here, and this system has no apt-get"
say "${missing[*]} not found: getting ${wanted[*]}"
trap 'fail "could not get ${wanted[*]}; please have them installed"' ERR
get "${wanted[@]}"
for server in "${missing[@]}"; do
	found "$server" || fail "$server is still not found after getting ${wanted[*]}; please install it"
done
