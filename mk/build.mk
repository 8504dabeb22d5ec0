# Builds one variant in the folder B. Run by ../Makefile, which gives B, VARIANT, CC and VERSION.
#
#   lib/LAYER/*.c             $(B)/libchathist.a
#   lib/convert/page/*           $(B)/page.c, in the archive
#   docs/hist-sync.sql           $(B)/sync_sql.c, in the archive
#   cmd/NAME.c                $(B)/NAME
#   tests/unit/NAME_test.c     $(B)/tests/unit/NAME_test
#   tests/fuzz/NAME_fuzz.c    $(B)/tests/fuzz/NAME_fuzz
#   tests/tools/NAME.c        $(B)/tests/tools/NAME, programs that the tests use; faults.so is loaded into programs
#   bench/NAME.c              $(B)/bench/NAME

ifeq ($(and $(B),$(VARIANT),$(VERSION)),)
$(error run make in the top folder: it runs mk/build.mk with the variables that it needs)
endif

.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
PKG_CONFIG ?= pkg-config

# Libraries. --as-needed leaves out what a program's objects do not ask for; those of some programs
# are offered to them alone, so that another that comes to need them does not link. The loader searches
# libraries in this order for each symbol of each library, and most symbols are in libcrypto: with it
# first, chat starts half a millisecond earlier.
common_libs := libcjson libutf8proc uuid
chat_libs := libcrypto libcurl libedit libpcre2-8
chathist_libs := libcurl libpcre2-8
hist-search_libs := libpcre2-8
hist-sessions_libs := libpcre2-8
hist-delete_libs := libpcre2-8
hist-export_libs := libpcre2-8
hist-show_libs := libpcre2-8
# Systems call Lua 5.4 differently.
lua := $(firstword $(foreach name,lua5.4 lua-5.4 lua54 lua,\
    $(shell $(PKG_CONFIG) --atleast-version=5.4 $(name) 2>/dev/null && echo $(name))) lua5.4)
hist-import_libs := $(lua) sqlite3 yaml-0.1 libzstd libpcre2-8
hist-load_libs := libpcre2-8
# WITH_POSTGRES=no: hist-sync has no databases as places.
WITH_POSTGRES ?= yes
hist-sync_libs := $(if $(filter no,$(WITH_POSTGRES)),,libpq)
hist-browse_libs := ncursesw libpcre2-8
all_libs := $(common_libs) $(chat_libs) $(hist-import_libs) $(hist-browse_libs) $(hist-sync_libs)

ifeq ($(shell command -v $(firstword $(CC))),)
$(error no C compiler '$(CC)': `make deps` installs what is missing)
endif
ifeq ($(shell $(PKG_CONFIG) --exists $(all_libs) 2>/dev/null && echo found),)
$(error pkg-config does not find all of $(all_libs): `make deps` installs what is missing)
endif
lib_cppflags := $(patsubst -I%,-isystem%,$(shell $(PKG_CONFIG) --cflags $(all_libs)))
libs = $(shell $(PKG_CONFIG) --libs $1)

# $(call compiles,FLAGS), $(call links,FLAGS): FLAGS if this compiler takes them.
$(shell mkdir -p $(B))
hash := \#
space := $(subst ,, )
compiles = $(shell printf '$(hash)include <stdio.h>\n' | \
    $(CC) -Werror $1 -x c -c -o $(B)/probe - 2>/dev/null && echo '$1'; rm -f $(B)/probe)
links = $(shell printf 'int main(void) { return 0; }\n' | \
    $(CC) -Werror $1 -x c -o $(B)/probe - 2>/dev/null && echo '$1'; rm -f $(B)/probe)

warnings := -Wall -Wextra -Wconversion -Wsign-conversion -Wmissing-prototypes -Wstrict-prototypes \
            -Wvla -Wshadow -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wformat=2 \
            -Wimplicit-fallthrough $(if $(filter 1,$(WERROR)),-Werror)
# What shows a system's functions beside those of POSIX: on the BSDs _POSIX_C_SOURCE would hide them.
system := $(shell $(CC) -dumpmachine)
features := $(if $(findstring linux,$(system)),-D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE)$(if \
    $(findstring darwin,$(system))$(findstring macos,$(system)),-D_DARWIN_C_SOURCE)
standard := -std=c11 -pthread $(features) -Iinclude -Ilib $(lib_cppflags)
sanitizers := -fsanitize=address,undefined -fno-sanitize-recover=all

ifeq ($(VARIANT),release)
# Fat objects: the programs are optimised as wholes, while the tests, nm and a plain ar still work
# with the same archive. A compiler that cannot make them builds without LTO. LTO has the names of the programs, each
# of which takes some seconds to link; .ci/run names a few that contain most of the library.
LTO ?= $(notdir $(programs))
lto := $(call links,-flto=auto -ffat-lto-objects)
fortify := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE
# The programs hold no path of the machine that built them, so that two builds are the same. gcc does not give the
# assembler of a fat object the map, and so writes the table of lines by itself.
prefix_map := $(if $(filter 1,$(words $(CURDIR))),$(call compiles,-ffile-prefix-map=$(CURDIR)=.) \
    $(if $(lto),$(call compiles,-gno-as-loc-support)))
variant_cflags := -O2 -g -fPIE -ffunction-sections -fdata-sections $(prefix_map) \
    $(or $(call compiles,-O2 $(fortify)=3),$(fortify)=2) \
    $(call compiles,-fstack-protector-strong) $(call compiles,-fstack-clash-protection) \
    $(call compiles,-fcf-protection=full) $(call compiles,-ftrivial-auto-var-init=zero) \
    $(call compiles,-fstrict-flex-arrays=3) $(lto)
variant_ldflags := $(lto) $(if $(lto),$(prefix_map)) $(call links,-pie) $(call links,-z relro -z now -Xlinker --gc-sections)
# chat starts for each prompt, and each shared library takes one or two percent of the time before the request is sent.
# hist-import is started by other programs, to see whether they have anything new. So the two contain the libraries
# below if there are archives of them. ARCHIVES=no: they share them, as the programs of a distribution do.
ARCHIVES ?= yes
archive = $(if $(filter yes,$(ARCHIVES)),$(if $(call links,-pie -Xlinker -u -Xlinker $2 $1),$1))
archive_-lpcre2-8 := $(call archive,-l:libpcre2-8.a,pcre2_match_8)
archive_-luuid := $(call archive,-l:libuuid.a,uuid_generate_random)
archive_-lutf8proc := $(call archive,-l:libutf8proc.a,utf8proc_map)
archive_-ledit := $(call archive,-l:libedit.a -l:libtinfo.a -l:libbsd.a -l:libmd.a,el_init)
archive_-l$(lua) := $(call archive,-l:lib$(lua).a -lm,lua_newstate)
archive_-lyaml := $(call archive,-l:libyaml.a,yaml_parser_initialize)
archive_-lzstd := $(call archive,-l:libzstd.a,ZSTD_createDStream)
$(B)/chat $(B)/hist-import: libs = $(foreach flag,$(shell $(PKG_CONFIG) --libs $1),$(or $(archive_$(flag)),$(flag)))
else ifeq ($(VARIANT),debug)
variant_cflags := -O0 -g3
else ifeq ($(VARIANT),asan)
variant_cflags := -O1 -g -fno-omit-frame-pointer $(sanitizers)
variant_ldflags := $(sanitizers)
else ifeq ($(VARIANT),coverage)
variant_cflags := -O0 -g --coverage
variant_ldflags := --coverage
else ifeq ($(VARIANT),fuzz)
# OSS-Fuzz sets it (packaging/oss-fuzz).
LIB_FUZZING_ENGINE ?= -fsanitize=fuzzer
variant_cflags := -O1 -g -fno-omit-frame-pointer $(sanitizers) -fsanitize=fuzzer-no-link
variant_ldflags := $(sanitizers)
else
$(error VARIANT is release, debug, asan, coverage or fuzz, not '$(VARIANT)')
endif
variant_ldflags += $(call links,-Xlinker --as-needed)

# The code of the tests runs once: to optimise it takes longer than that. FORTIFY needs optimisation.
test_cflags := -O0 -U_FORTIFY_SOURCE $(if $(lto),-fno-lto)
compile_flags = $(standard) $(variant_cflags) $(warnings) $(CPPFLAGS) $(CFLAGS)
link_flags = -pthread $(variant_ldflags) $(CFLAGS) $(LDFLAGS)
# Flags for single sources: the banned functions, the version, and functions that this edition of
# POSIX does not have.
source_flags = $(if $(filter lib/% cmd/%,$1),$(if $(findstring linux,$(system)),,-include unistd.h) -include lib/base/banned.h) \
               $(if $(filter lib/base/file.c lib/base/process.c lib/base/system.c tests/tools/faults.c,$1),-D_GNU_SOURCE) \
               $(if $(filter no/lib/sync/postgres.c,$(WITH_POSTGRES)/$1),-DWITHOUT_POSTGRES) \
               $(if $(filter lib/cli/% lib/chat/% lib/repl/% lib/browse/% cmd/%,$1),-DPROGRAM_PREFIX='"$(PROGRAM_PREFIX)"') \
               $(if $(filter cmd/%,$1),-DIMPORTERS='"$(importers)"') \
               $(if $(filter tests/unit/%,$1),$(test_cflags)) \
               $(if $(filter lib/cli/% lib/llm/http.c lib/mcp/client.c,$1),-DCHATHIST_VERSION='"$(VERSION)"')

# The importers, a script each: hist-import finds them in the folder of a build, and its help names
# them.
importers := $(subst $(space),|,$(basename $(notdir $(sort $(wildcard importers/*.lua)))))
lib_sources := $(wildcard lib/*/*.c)
programs := $(patsubst cmd/%.c,$(B)/%,$(wildcard cmd/*.c))
unit_tests := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/*_test.c))
fuzz_targets := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/*_fuzz.c))
test_tools := $(patsubst %.c,$(B)/%,$(filter-out tests/tools/faults.c,$(wildcard tests/tools/*.c)))
faults := $(if $(findstring linux,$(system)),$(B)/tests/tools/faults.so)
benches := $(patsubst %.c,$(B)/%,$(wildcard bench/*.c))
objects = $(patsubst %.c,$(B)/%.o,$1)

.PHONY: all tests fuzz bench objects lint
all: $(programs) $(test_tools) $(faults) $(B)/importers
tests: $(unit_tests)
fuzz: $(fuzz_targets)
bench: $(benches)
objects: $(call objects,$(lib_sources) $(wildcard cmd/*.c)) $(B)/page.o
all tests fuzz bench objects:
	@:

# Two files that change when their text does: other flags build everything again, another list of
# sources the archive.
flags := $(strip $(CC) $(shell $(CC) -dumpversion) $(compile_flags) $(link_flags) $(VERSION) $(PROGRAM_PREFIX) $(WITH_POSTGRES) $(LTO) $(importers))
ifneq ($(file <$(B)/flags),$(flags))
$(file >$(B)/flags,$(flags))
endif
members := $(sort $(call objects,$(lib_sources))) $(B)/page.o $(B)/sync_sql.o
ifneq ($(file <$(B)/members),$(members))
$(file >$(B)/members,$(members))
endif

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(compile_flags) $(call source_flags,$<) -MMD -MP -c -o $@ $<

# The page of hist-export: its parts as one C file.
$(B)/page.c: mk/page mk/c-text lib/terminal/languages.def $(wildcard lib/convert/page/*)
	@echo "  PAGE  $@"
	@mk/page lib/convert/page >$@

$(B)/page.o: $(B)/page.c $(B)/flags
	@$(CC) $(compile_flags) -c -o $@ $<

# The tables of hist-sync as a C text.
$(B)/sync_sql.c: mk/c-text docs/hist-sync.sql
	@mk/c-text sync_sql <docs/hist-sync.sql >$@

$(B)/sync_sql.o: $(B)/sync_sql.c $(B)/flags
	@$(CC) $(compile_flags) -c -o $@ $<

$(B)/libchathist.a: $(members) $(B)/members
	@echo "  AR    $@"
	@rm -f $@
	@$(AR) qcs $@ $(members)

# $(call link,LIBRARIES,FLAGS)
define link
@mkdir -p $(@D)
@echo "  LINK  $@"
@$(CC) $(link_flags) $2 -o $@ $(filter %.o %.a,$^) $(call libs,$1)
endef

$(programs): $(B)/%: $(B)/cmd/%.o $(B)/libchathist.a
	$(call link,$($*_libs) $(common_libs),$(if $(lto),$(if $(filter $*,$(LTO)),,-fno-lto)))

$(B)/importers:
	@ln -sfn '$(CURDIR)/importers' $@

$(unit_tests) $(test_tools): $(B)/%: $(B)/%.o $(B)/libchathist.a
	$(call link,$(all_libs),$(if $(lto),-fno-lto))

$(faults): tests/tools/faults.c $(B)/flags
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(compile_flags) $(call source_flags,$<) -fPIC -shared -o $@ $<

$(fuzz_targets): $(B)/%: $(B)/%.o $(B)/libchathist.a
	$(call link,$(all_libs),$(LIB_FUZZING_ENGINE))

$(benches): $(B)/%: $(B)/%.o $(B)/libchathist.a
	$(call link,$(all_libs))

include mk/lint.mk

-include $(shell find $(B) -name '*.d' 2>/dev/null)
