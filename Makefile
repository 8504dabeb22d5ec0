# chathist: `make help` lists the goals.
#
# This file has the goals, the tests and the installation. It runs mk/build.mk, which builds each
# variant in a separate folder. Nothing here needs a compiler or a library, so that `make deps` runs
# on a machine that has neither.

# Older versions do not know $(file <...). On macOS (3.81) and the BSDs, use `gmake`.
ifneq ($(filter 3.% 4.0 4.0.% 4.1 4.1.%,$(MAKE_VERSION)),)
$(error GNU make 4.2 or later is needed; this is $(MAKE_VERSION))
endif

VERSION = 0.1.0

# These can be set on the command line, and all except BUILD in the environment:
BUILD = build#            root of the build folders
# release, debug, asan, coverage or fuzz; goals that only test use the debug build, which is made in seconds
VARIANT ?= $(if $(filter quick check-unit check-cases check-cmd check-systems,$(MAKECMDGOALS)),debug,release)
CC ?= cc
CFLAGS ?=#                added to the variant's own, as are CPPFLAGS and LDFLAGS
WERROR ?=#                1: warnings are errors
TEST_JOBS ?= 2#           test files and fuzz targets run at once
BUDGET ?= 600#            seconds for all of fuzz or torture
DEBIAN ?= trixie#         the release that check-debian and check-deb use
DEBIAN_USER ?= dev#       its user: dev, who has sudo, or root
DESTDIR ?=
PREFIX ?= /usr/local
PROGRAM_PREFIX ?=#        put before the name of each program, its manual page and its completions

# The goals run one after the other; the commands that they run use -j.
.NOTPARALLEL:
.DEFAULT_GOAL := all

ifneq ($(filter deps,$(MAKECMDGOALS)),)

# `make deps GOAL...`: the packages come first, then the other goals in a make of their own.
goals := $(filter-out deps,$(MAKECMDGOALS))
groups := $(strip build $(if $(goals),$(if $(filter check%,$(goals)),check),check) \
          $(if $(filter lint format fuzz,$(goals)),lint) $(if $(filter deb,$(goals)),deb))

.PHONY: deps after-deps $(goals)
deps:
	mk/deps $(groups)
ifneq ($(goals),)
after-deps: deps
	@$(MAKE) --no-print-directory $(goals)
$(goals): after-deps
	@:
endif

else

# gcc and clang use different folders; the fuzz variant always uses clang.
compiler := $(notdir $(firstword $(CC)))
folder = $(BUILD)/$(if $(filter fuzz,$1),,$(addsuffix -,$(filter-out cc gcc,$(compiler))))$1
here = $(call folder,$(VARIANT))
# $(call build,VARIANT,GOAL): the goals of mk/build.mk in that variant's folder.
build = +@$(MAKE) --no-print-directory -f mk/build.mk B=$(call folder,$1) VARIANT=$1 \
        CC='$(if $(filter fuzz,$1),clang,$(CC))' VERSION=$(VERSION) \
        PROGRAM_PREFIX='$(PROGRAM_PREFIX)' $2

programs := $(patsubst cmd/%.c,%,$(wildcard cmd/*.c))
unit_tests := $(patsubst tests/unit/%.c,tests/unit/%,$(wildcard tests/unit/*_test.c))
fuzz_targets := $(patsubst tests/fuzz/%.c,tests/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
cases := $(wildcard tests/cases/*.case)
cmd_tests := $(wildcard tests/cmd/*.bats)
system_tests := $(wildcard tests/systems/*.bats)
# The files that take longest come first and the unit tests last, so that at the end no processor waits
# for one long file. check-install builds the programs once more, on one processor.
longest_tests := $(addprefix tests/,check-install cmd/hist-sync.bats feature/page.bats feature/skip.bats feature/wire.bats feature/turn.bats feature/oracle.bats \
    cmd/hist-browse.bats feature/trust.bats feature/store.bats feature/tools.bats feature/order-search.bats \
    feature/index.bats feature/terminal.bats feature/postgresql-roles.bats feature/failover.bats feature/hang.bats \
    feature/interactive.bats feature/bad-input.bats feature/completions.bats cmd/hist-delete.bats)
script_and_program_tests := $(longest_tests) $(cases) $(filter-out $(longest_tests),$(cmd_tests) $(system_tests) \
    $(wildcard tests/feature/*.bats))
# The .bats files that check-asan runs beside the unit tests and the cases: the requests and answers of chat as a
# whole. The streams of all services are in splits_test, byte by byte and cut. ASAN_TESTS='tests/*/*.bats' runs all
# files, which takes far longer.
ASAN_TESTS ?= tests/feature/wire.bats

# The tests get the places of the programs and, in MAKEFLAGS, the variables of this make (BUILD, CC,
# …) without its jobs.
test_env = BIN='$(abspath $(here))' BUILD='$(abspath $(here))' CC='$(CC)' VARIANT=$(VARIANT) \
           TEST_JOBS=$(TEST_JOBS) MAKEFLAGS='$(if $(MAKEOVERRIDES),-- $(MAKEOVERRIDES))' MFLAGS=
run = @$(test_env) tests/run

.PHONY: all release debug asan quick check check-unit check-cases check-cmd check-systems check-asan check-debian check-deb check-servers check-mcp check-agents check-sdks check-ports
.PHONY: lint format bench fuzz torture install uninstall check-install check-static deb static dist release-files clean deps demo help

all: ## build the programs (VARIANT=release unless told otherwise); the default
	$(call build,$(VARIANT),all)

release: ## build with optimisation, LTO and hardening, in build/release
	$(call build,release,all)

debug: ## build without optimisation, in build/debug
	$(call build,debug,all)

asan: ## build with the address and undefined behaviour sanitizers, in build/asan
	$(call build,asan,all)

check: ## build and run every test; the last line is `N passed, N failed`
	$(call build,$(VARIANT),all tests)
	$(run) $(script_and_program_tests) tests/layers $(addprefix $(here)/,$(unit_tests))

# Without optimisation these take longer than all others together; check-unit and check-cases run them, too.
slow_units := $(addprefix tests/unit/,skip_index_test index_test splits_test browse_parts_test regex_literals_test \
    browse_reader_test)
slow_tests := $(slow_units) $(addprefix tests/cases/,hist-import.case hist-import-agents.case hist-import-place.case)

quick: ## the debug build, the unit tests and the cases but the slow ones: what to run after each change
	$(call build,$(VARIANT),all tests)
	$(run) $(filter-out $(slow_tests),$(cases)) $(addprefix $(here)/,$(filter-out $(slow_tests),$(unit_tests)))

check-unit: ## the unit tests alone
	$(call build,$(VARIANT),tests)
	$(run) $(addprefix $(here)/,$(unit_tests))

check-cases: ## the cases of the programs alone
	$(call build,$(VARIANT),all)
	$(run) $(cases)

check-cmd: ## all tests of the programs
	$(call build,$(VARIANT),all)
	$(run) $(cases) $(cmd_tests)

check-systems: ## step through the systems whose features we provide
	$(call build,$(VARIANT),all)
	$(run) $(system_tests)

check-asan: ## unit tests, cases and ASAN_TESTS again, under the sanitizers
	+@ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:exitcode=99 \
	UBSAN_OPTIONS=print_stacktrace=1:exitcode=99 \
	$(MAKE) --no-print-directory check-variant VARIANT=asan

.PHONY: check-variant
check-variant:
	$(call build,$(VARIANT),all tests)
	$(run) $(ASAN_TESTS) $(addprefix $(here)/,$(slow_units)) $(cases) \
	    $(addprefix $(here)/,$(filter-out $(slow_units),$(unit_tests)))

COVERAGE_TESTS = tests/cmd/hist-sync.bats

.PHONY: coverage
coverage: ## lines and branches that tests run of the files that keep, find and carry messages; takes minutes
	$(call build,coverage,all tests)
	@find $(call folder,coverage) -name '*.gcda' -delete
	+@TEST_TIMEOUT=3600 $(MAKE) --no-print-directory check-variant VARIANT=coverage ASAN_TESTS='$(COVERAGE_TESTS)'
	@mk/coverage $(call folder,coverage)

check-servers: ## send a long conversation to llama.cpp and llama-cpp-python, from PyPI; takes minutes
	$(call build,$(VARIANT),all)
	@$(test_env) tests/tools/check-servers build/servers

check-mcp: ## run the conformance scenarios of MCP, and MCP servers from npm and PyPI; takes minutes
	$(call build,$(VARIANT),all)
	@$(test_env) tests/tools/check-mcp build/mcp

check-agents: ## let Claude Code, Codex, Gemini CLI and OpenCode, from npm, search a history and continue an export; takes minutes
	$(call build,$(VARIANT),all)
	@$(test_env) tests/tools/check-agents build/agents

check-sdks: ## hold chat to the SDKs from PyPI, on their streams, ours and those in STREAMS=FOLDER; takes minutes
	$(call build,$(VARIANT),all tests)
	@$(test_env) tests/tools/check-sdks build/sdks $(STREAMS)
	@$(test_env) tests/tools/check-requests build/sdks

check-debian: ## `make deps check` in a fresh Debian 13, as a plain user with sudo; needs root and debootstrap
	@mk/check-debian $(DEBIAN) $(DEBIAN_USER)

check-deb: ## build the Debian package in a fresh Debian 13, install, test and purge it in another; needs root and debootstrap
	@PROGRAM_PREFIX='$(PROGRAM_PREFIX)' mk/check-deb $(DEBIAN)

check-ports: ## compile every source for macOS, FreeBSD and musl with zig, from PyPI; nothing is linked
	@mk/check-ports

check-install: ## install into an empty folder, run, uninstall, and find nothing left
	$(call build,$(VARIANT),all)
	$(run) tests/check-install

lint: ## clang-format, clang-tidy, cppcheck, shellcheck, mandoc over everything
	$(call build,debug,-k lint)

format: ## lay out every C file as .clang-format says
	clang-format -i $(wildcard lib/*/*.c cmd/*.c include/chathist/*/*.h lib/*/*.h tests/*/*.c tests/*/*.h bench/*.c)

bench: ## time the programs
	$(call build,$(VARIANT),all bench)
	@for b in $(wildcard bench/*.sh); do $(test_env) $$b || exit; done

fuzz: ## run the fuzz targets for BUDGET seconds (600) in all; needs clang
	$(call build,fuzz,fuzz)
	@$(test_env) mk/fuzz $(BUDGET) $(addprefix $(call folder,fuzz)/,$(fuzz_targets))

torture: ## run the oracles of the tests with new seeds for BUDGET seconds (600)
	$(call build,$(VARIANT),all tests)
	@$(test_env) mk/torture $(BUDGET)

demo: ## build, then import, find and continue recorded conversations; no model is asked
	$(call build,$(VARIANT),all)
	@PATH="$(abspath $(here)):$$PATH" examples/demo.sh

# GNU's names for the folders; each can be set on the command line.
prefix = $(PREFIX)
exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
datarootdir = $(prefix)/share
datadir = $(datarootdir)
mandir = $(datarootdir)/man
docdir = $(datarootdir)/doc/chathist
bashdir = $(datadir)/bash-completion/completions
zshdir = $(datadir)/zsh/site-functions
fishdir = $(datadir)/fish/vendor_completions.d
# The files (to_KIND) and the folder (in_KIND) of each kind. uninstall removes exactly these files.
to_bin = $(addprefix $(here)/,$(programs))
to_man1 = $(wildcard man/*.1)
to_man5 = $(wildcard man/*.5)
to_man7 = $(wildcard man/*.7)
to_bash = $(wildcard completions/bash/*)
to_zsh = $(wildcard completions/zsh/*)
to_fish = $(wildcard completions/fish/*)
to_doc = $(wildcard *.md LICENSE docs/*) $(sort $(shell find examples -type f))
to_importer = $(wildcard importers/*.lua)
in_bin = $(bindir)
in_man1 = $(mandir)/man1
in_man5 = $(mandir)/man5
in_man7 = $(mandir)/man7
in_bash = $(bashdir)
in_zsh = $(zshdir)
in_fish = $(fishdir)
in_importer = $(datadir)/$(PROGRAM_PREFIX)chathist/importers
in_doc = $(docdir)
kinds := bin man1 man5 man7 bash zsh fish importer doc

# $(call each,KIND,COMMAND): runs COMMAND for each file $$f of the kind, $$t being where it is installed.
# Documents and examples keep their folders and names; zsh's completions begin with an underscore.
define each
@for f in $(to_$1); do n=$${f##*/}; \
    case $1 in doc) n=$$f ;; importer) ;; zsh) n=_$(PROGRAM_PREFIX)$${n#_} ;; *) n=$(PROGRAM_PREFIX)$$n ;; esac; \
    t='$(DESTDIR)$(in_$1)'/$$n; $2 || exit; done

endef

# Copies $$f to $$t. A prefix also replaces the names of the programs inside a text.
copy = m=644; [ ! -x "$$f" ] || m=755; install -d "$${t%/*}" && install -m $$m "$$f" "$$t"$(if \
    $(PROGRAM_PREFIX), && { [ $1 = bin ] || [ $1 = importer ] || mk/prefix '$(PROGRAM_PREFIX)' <"$$f" >"$$t"; })

install: ## copy programs, man pages, completions, examples to DESTDIR and prefix (/usr/local)
	$(call build,$(VARIANT),all)
	$(foreach k,$(kinds),$(call each,$k,$(call copy,$k)))
	@case ":$$PATH:" in \
	*:'$(bindir)':*) found=', which is in PATH' ;; \
	*) found=', which is not in PATH: export PATH="$(bindir):$$PATH"' ;; \
	esac; \
	echo "install: the programs are in $(DESTDIR)$(bindir)$(if $(DESTDIR),,$$found)"

uninstall: ## remove what install copied
	$(foreach k,$(kinds),$(call each,$k,rm -f "$$t"))
	@rmdir '$(DESTDIR)$(in_importer)' '$(DESTDIR)$(in_importer:/importers=)' 2>/dev/null || :
	@[ ! -d '$(DESTDIR)$(docdir)' ] || find '$(DESTDIR)$(docdir)' -depth -type d -exec rmdir {} + 2>/dev/null || :

deb: ## build a Debian package in build/deb, and check it with lintian if that is installed
	@mk/deb $(VERSION) $(PROGRAM_PREFIX)

static: ## build/static/chathist-VERSION-linux-ARCH.tar.gz, for any Linux; builds the libraries, too, the first time
	@mk/static $(VERSION) $(PROGRAM_PREFIX)

check-static: static
check-static: ## run the programs of that tarball in an empty root; needs root
	@tests/check-static build/static/chathist-$(VERSION)-linux-$$(uname -m).tar.gz

# The settings of the user's git do not change the file.
dist: ## chathist-VERSION.tar.gz of the last commit
	git -c tar.umask=0022 -c tar.tar.gz.command='gzip -cn9' archive --prefix=chathist-$(VERSION)/ -o chathist-$(VERSION).tar.gz HEAD

release-files: dist
release-files: ## what a release consists of, in build/release-VERSION; prints the commands that publish it
	@mk/release $(VERSION)

# Removes only folders that mk/build.mk made, because BUILD may contain other files.
clean: ## remove the build folders
	rm -rf $(patsubst %/flags,%,$(wildcard $(BUILD)/*/flags)) chathist-$(VERSION).tar.gz
	@rmdir $(BUILD) 2>/dev/null || :

# Run by the first half of this file.
deps: ## install what is missing, for building and for the goals named after it

help: ## this list
	@awk -F ': *## ' '/^[a-z-]+: *## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

endif
