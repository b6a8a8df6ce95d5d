# Builds, tests and installs libdthrottle with its header and pkg-config file.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include

# Read from [workspace.package] of Cargo.toml.
C_FIELD = $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^$(1) = "\(.*\)"$$/\1/p' Cargo.toml)
C_VERSION = $(call C_FIELD,version)
C_SONAME = libdthrottle.so.$(firstword $(subst ., ,$(C_VERSION)))

C_SOURCES := $(shell find core/src bindings-c/src -name '*.rs') bindings-c/build.rs \
	Cargo.toml Cargo.lock core/Cargo.toml bindings-c/Cargo.toml
# The libraries that a program needs if it is linked with libdthrottle.a. Written last. Without
# libgcc_s, which has no static form; compilers add it, or libgcc_eh with -static.
C_BUILT := $(RELEASE)/libdthrottle.libs

build-c: cargo-ready ## Build libdthrottle for C: target/release/libdthrottle.so and .a
	@mkdir -p $(RELEASE)
	CARGO_TERM_COLOR=never $(CARGO) rustc --quiet --release --package dthrottle-c --lib -- \
		--print native-static-libs 2>$(C_BUILT).log || { cat $(C_BUILT).log >&2; exit 1; }
	@ln -sf libdthrottle.so $(RELEASE)/$(C_SONAME)
	@sed -n 's/^note: native-static-libs: //p' $(C_BUILT).log | sed 's/-lgcc_s *//' >$(C_BUILT)
	@test -s $(C_BUILT) || { echo "no native-static-libs in $(C_BUILT).log" >&2; exit 1; }

# Only runs cargo if the sources have changed, because root, who installs, may not have it.
$(C_BUILT): $(C_SOURCES)
	@$(MAKE) --no-print-directory build-c

# Builds the daemon, because the tests of its client need it.
test-c: build-c ## Test the C library: vectors, bad input, memory, threads, every C standard
	@$(NEED) gcc g++ valgrind pkg-config nm=binutils /usr/include/cjson/cJSON.h=libcjson-dev
	$(CARGO) test --quiet --package dthrottle-c
	$(CARGO) build --quiet --package dthrottled
	@MAKE="$(MAKE)" bindings-c/tests/run.sh

header: cargo-ready ## Generate include/dthrottle.h from the exports
	$(CARGO) run --quiet --package xtask -- header

header-check: cargo-ready
	$(CARGO) run --quiet --package xtask -- header --check

abi: build-c ## Generate bindings-c/abi.txt, the binary interface of the library
	@$(NEED) gcc nm=binutils
	bindings-c/tests/abi.sh include/dthrottle.h $(RELEASE)/libdthrottle.so >bindings-c/abi.txt

install: $(C_BUILT) ## Install the C library: make install PREFIX=/usr/local DESTDIR=
	install -d "$(DESTDIR)$(INCLUDEDIR)" "$(DESTDIR)$(LIBDIR)/pkgconfig"
	install -m 644 include/dthrottle.h "$(DESTDIR)$(INCLUDEDIR)/dthrottle.h"
	install -m 755 $(RELEASE)/libdthrottle.so "$(DESTDIR)$(LIBDIR)/libdthrottle.so.$(C_VERSION)"
	ln -sf libdthrottle.so.$(C_VERSION) "$(DESTDIR)$(LIBDIR)/$(C_SONAME)"
	ln -sf $(C_SONAME) "$(DESTDIR)$(LIBDIR)/libdthrottle.so"
	install -m 644 $(RELEASE)/libdthrottle.a "$(DESTDIR)$(LIBDIR)/libdthrottle.a"
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(C_VERSION)|' -e 's|@DESCRIPTION@|$(call C_FIELD,description)|' \
		-e "s|@PRIVATE@|$$(cat $(C_BUILT))|" bindings-c/dthrottle.pc.in \
		>"$(DESTDIR)$(LIBDIR)/pkgconfig/dthrottle.pc"

uninstall: ## Remove the installed files, with the same PREFIX and DESTDIR
	rm -f "$(DESTDIR)$(INCLUDEDIR)/dthrottle.h" "$(DESTDIR)$(LIBDIR)/libdthrottle.a" \
		"$(DESTDIR)$(LIBDIR)/libdthrottle.so" "$(DESTDIR)$(LIBDIR)/$(C_SONAME)" \
		"$(DESTDIR)$(LIBDIR)/libdthrottle.so.$(C_VERSION)" \
		"$(DESTDIR)$(LIBDIR)/pkgconfig/dthrottle.pc"

.PHONY: build-c test-c header header-check abi install uninstall
