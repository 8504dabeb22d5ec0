#!/usr/bin/env bats
#
# mk/deps on a machine that has nothing, with stubs in place of the package managers; and the version of make.
# shellcheck disable=SC2016

load ../helper

setup() {
    sandbox
    local name
    mkdir -p bin
    for name in sh sed awk sort tr wc env cat grep mkdir rm rmdir chmod; do ln -s "$(type -P "$name")" "bin/$name"; done
    # Neither pkg-config nor any library is found.
    export PKG_CONFIG=false
    export MANAGER=$PWD/manager
    # The files of this machine are not touched.
    export DEPS_ROOT=$PWD/root
    mkdir -p root/usr/sbin root/etc
}

# stub NAME TEXT: a command that notes its arguments and does that. A link of that name would be written through.
stub() {
    [[ ! -L bin/$1 ]] || fail "bin/$1 is a link to a command of this machine" || return 1
    printf '#!/bin/sh\necho "%s $*" >>"$MANAGER"\n%s\n' "$1" "$2" >"bin/$1"
    chmod +x "bin/$1"
}

# deps STATUS GROUP...: runs it as root, so that it needs no sudo.
deps() {
    local want=$1
    shift
    stub id 'echo 0'
    run_expect "$want" env PATH="$PWD/bin" sh "$ROOT/mk/deps" "$@"
}

apt() {
    stub apt-get 'case "$*" in *-s*) echo "Inst one (1 Debian [all])"; echo "Inst two [1] (2 Debian [all])"
        echo "Inst three (1 Debian [amd64])"; echo "Conf one (1 Debian [all])" ;; esac'
    stub apt-cache 'printf "Package: one\nInstalled-Size: 100000\n\nPackage: three\nInstalled-Size: 280000\n"'
}

@test "deps: says how many packages and megabytes before it installs" {
    apt
    deps 1 check
    stdout_matches '^deps: 2 packages, about 390 MB$'
    stdout_matches '^deps: running .*env DEBIAN_FRONTEND=noninteractive apt-get install'
    grep -qxF 'apt-cache --no-all-versions show one three' manager
    stderr_has 'deps: installed, but still not found:'
}

@test "deps: the cross compiler and the emulator are a group of their own" {
    apt
    deps 1 build check lint
    run_expect 1 grep -E 'qemu|aarch64|arm64' manager
    run_expect 0 grep -c 'bats' manager
    rm manager
    deps 1 arm
    grep -q 'install .*gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user' manager
}

@test "deps: other managers know the number alone" {
    stub dnf ''
    deps 1 lint
    stdout_matches '^deps: [0-9]+ packages and their dependencies$'
}

@test "deps: the servers of the tests are neither started nor enabled, and no database is made" {
    apt
    deps 1 check
    # An ssh server of this machine is found.
    stdout_matches '/without-services (ssh sshd )?postgresql env DEBIAN_FRONTEND=noninteractive apt-get install.* postgresql '
    rm manager
    WITH_POSTGRES=no deps 1 build check
    run_expect 1 grep -E 'postgresql|libpq' manager
    run_expect 0 find root -type f -o -name createcluster.d
    stdout_empty

    # What a package manager finds while it installs, asked as invoke-rc.d and deb-systemd-invoke ask.
    stub apt-get 'cat "$DEPS_ROOT"/etc/postgresql-common/createcluster.d/*.conf
        for unit in ssh postgresql.service cron; do
            "$DEPS_ROOT"/usr/sbin/policy-rc.d "$unit" start 2 && echo "$unit: 0" || echo "$unit: $?"
        done
        exit 7'
    stub systemctl 'exit 1'
    run_expect 7 env PATH="$PWD/bin" "$ROOT/mk/without-services" 'ssh postgresql' apt-get install
    stdout_is 'create_main_cluster = false' 'ssh: 101' 'postgresql.service: 101' 'cron: 0'
    run_expect 0 find root -type f -o -name createcluster.d
    stdout_empty

    # A policy that was there stays.
    printf '#!/bin/sh\nexit 0\n' >root/usr/sbin/policy-rc.d
    chmod +x root/usr/sbin/policy-rc.d
    remember root/usr/sbin/policy-rc.d
    stub apt-get '"$DEPS_ROOT"/usr/sbin/policy-rc.d ssh start'
    run_expect 0 env PATH="$PWD/bin" "$ROOT/mk/without-services" 'ssh postgresql' apt-get install
    unchanged root/usr/sbin/policy-rc.d
    run_expect 0 grep -c 'systemctl disable .*[.]s' manager
    stdout_is 4
}

@test "deps: an unknown group" {
    deps 2 chek
    stderr_is "deps: unknown group 'chek': there are build, check, lint, arm, browser and deb"
}

@test "deps: what the Debian package needs, all names at once" {
    apt
    stub dirname 'echo "$1" | sed "s,/[^/]*$,,"'
    # One of them is there, one was removed.
    stub dpkg-query 'case "$*" in *procps) echo "install ok installed" ;; *python3) echo "deinstall ok config-files" ;; *) exit 1 ;; esac'
    run_expect 0 env PATH="$PWD/bin" sh "$ROOT/mk/deps" -n deb
    stdout_is "build-essential debhelper dpkg-dev $(sed -n 's/^ *\(lib[a-z0-9.-]*\),$/\1/p' "$ROOT/packaging/debian/control" | xargs) pkgconf python3 unicode-data uuid-dev"
    cp "$OUT" missing
    run_expect 2 env PATH="$PWD/bin" sh "$ROOT/mk/deb" 1.0
    stdout_empty
    stderr_is "deb: packages are missing, which 'make deps deb' installs: $(<missing)"
    deps 1 deb
    stdout_has "--no-install-recommends $(<missing)"
    run_expect 0 make --no-print-directory -n -C "$ROOT" deps deb
    stdout_matches '^mk/deps build deb$'
    # Nothing is missing.
    stub dpkg-query 'echo "install ok installed"'
    run_expect 0 env PATH="$PWD/bin" sh "$ROOT/mk/deps" -n deb
    stdout_empty
    rm bin/dpkg-query
    run_expect 2 env PATH="$PWD/bin" sh "$ROOT/mk/deb" 1.0
    stderr_is "deb: 'dpkg-query' is missing: only Debian and its relatives build this package"
}

@test "make: a version that is too old is refused" {
    run_expect 2 make --no-print-directory -C "$ROOT" MAKE_VERSION=3.81 help
    stdout_empty
    stderr_matches '\*\*\* GNU make 4\.2 or later is needed; this is 3\.81\.  Stop\.$'
}

@test "packages: all of them name the libraries of mk/deps" {
    cd "$ROOT"
    sed -n 's/^build pc://p' mk/deps >"$OUT"
    run_expect 0 test "$(wc -l <"$OUT")" -ge 10
    while read -r library apt _ pacman _ brew; do
        run_expect 0 grep -E "^ +$apt,?\$" packaging/debian/control
        run_expect 0 grep -xF "BuildRequires:  pkgconfig($library)" packaging/fedora/chathist.spec
        run_expect 0 grep -wF "'$pacman'" packaging/arch/PKGBUILD
        run_expect 0 grep -wF "depends_on \"$brew\"" packaging/homebrew/chathist.rb
    done < <(sed -n 's/^build pc://p' mk/deps)
}
