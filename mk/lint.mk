# What `make lint` checks; part of build.mk, for clang-tidy and cppcheck take the compiler's flags.
# A source that passed is checked again only after its object was rebuilt.

c_files := $(wildcard lib/*/*.c cmd/*.c tests/*/*.c bench/*.c)
h_files := $(wildcard include/chathist/*/*.h lib/*/*.h tests/*/*.h)
checked := $(wildcard lib/*/*.c cmd/*.c)
# Scripts are known by their first line; what bats and bash source has none and is known by its name.
scripts := $(shell find .ci mk bench examples tests -type f ! -name '*.bats' -exec grep -lE '^\#!.*[/ ](ba)?sh' {} + 2>/dev/null)
bats_files := $(shell find tests -name '*.bats' 2>/dev/null)
bash_files := $(wildcard completions/bash/*) $(shell find tests -name '*.bash' 2>/dev/null)
zsh_files := $(wildcard completions/zsh/*)
fish_files := $(wildcard completions/fish/*)
man_pages := $(wildcard man/*.[1-9])

.PHONY: lint lint-format lint-tidy lint-cppcheck lint-shell lint-man
# cppcheck is one long process: it comes first, so that at the end no processor waits for it.
lint: lint-cppcheck lint-shell lint-tidy lint-format lint-man

lint-format:
	@echo "  LINT  clang-format"
	@$(if $(c_files)$(h_files),clang-format --dry-run -Werror $(c_files) $(h_files))

# The analyzer, which takes most of the time of clang-tidy, gives up a function after this many steps instead of 225,000
# (its own default): 25,000 take twice as long, 75,000 five times. On nine files of earlier versions 75,000 steps
# reported five things that 25,000 do not; three of them look like false alarms. The rare paths are left to the
# sanitizers and the fuzz targets. `make lint TIDY_STEPS=225000` runs all steps; do that before a release.
TIDY_STEPS ?= 8000

lint-tidy: $(patsubst %.c,$(B)/%.tidy,$(checked))

$(B)/%.tidy: $(B)/%.o .clang-tidy
	@echo "  LINT  clang-tidy $*.c"
	@clang-tidy --quiet $*.c -- $(standard) $(call source_flags,$*.c) \
	    -Xclang -analyzer-config -Xclang max-nodes=$(TIDY_STEPS) 2>$@.log || \
	    { cat $@.log >&2; exit 1; }
	@touch $@

lint-cppcheck: $(B)/cppcheck

# With the project's own headers; it needs no others and knows the C library by itself.
cppcheck_flags := --quiet --std=c11 --enable=warning,portability,performance --inline-suppr \
                  --error-exitcode=1 --suppress=missingIncludeSystem -Iinclude -Ilib

$(B)/cppcheck: $(call objects,$(checked))
	@echo "  LINT  cppcheck"
	@$(if $(checked),cppcheck $(cppcheck_flags) $(checked))
	@touch $@

# A @test is a subshell, functions need no arguments, `cd ..` is fine where a failure ends the test, and
# a pipeline may ask for the size of the file that it appends to.
bats_exceptions := SC2030,SC2031,SC2119,SC2120,SC2103,SC2094

lint-shell:
	@echo "  LINT  shellcheck"
	@$(if $(scripts),shellcheck -x $(scripts))
	@$(if $(bats_files),shellcheck -x --shell=bats -e $(bats_exceptions) $(bats_files))
	@$(if $(bash_files),shellcheck -x --shell=bash $(bash_files))
	@$(if $(zsh_files),if command -v zsh >/dev/null; then zsh -n $(zsh_files); fi)
	@$(if $(fish_files),if command -v fish >/dev/null; then fish --no-execute $(fish_files); fi)

lint-man:
	@echo "  LINT  mandoc"
	@$(if $(man_pages),mandoc -T lint -W warning $(man_pages))
