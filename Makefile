# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# Every entry point. Recipes are short; the work is done in scripts/.

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.DEFAULT_GOAL := help

##help|this list
help:
	@sed -n 's/^##//p' Makefile | while IFS='|' read -r a b; do printf '  make %-26s %s\n' "$$a" "$$b"; done

##setup|make the build root, fetch the kernel, prepare its Rust metadata (once)
setup:
	@scripts/setup

##modules [KDIR=DIR]|build dtrace.ko, for the prepared kernel or for the build tree DIR
ifdef KDIR
modules:
	@scripts/modules '$(KDIR)'
else
modules: setup
	@scripts/modules >&2
endif

##userland|build the dtrace command
userland: setup
	@scripts/cargo build -q --release -p dtrace-cmd >&2

##run CMD='…'|boot the kernel in a virtual machine, load the module, run the command there
run: export DTRACE_CMD = $(value CMD)
run: modules userland
	@[ -n "$$DTRACE_CMD" ] || { echo "usage: make run CMD='dtrace -l'" >&2; exit 2; }
	@scripts/vm run "$$DTRACE_CMD"

##shell|the same with an interactive shell
shell: modules userland
	@scripts/vm shell

##cases [FILTER=…]|run the virtual machine's cases in qemu-tests/cases, slow ones too
cases: modules userland
	@scripts/vm cases $(FILTER)

##conformance [SUITE='WORD…']|run the suite of the other DTrace for Linux, or the cases of a class, or with a word in their path
conformance: modules userland
	@scripts/conformance $(SUITE)

##run-boot D='…'|trace a boot with `dtrace …`: a machine with an initial RAM disk that loads the module first
run-boot: modules userland
	@scripts/boot run $(D)

##kernel-debug|build the kernel with KASAN, lockdep and KUnit that KERNEL=debug stands for (once, a quarter of an hour)
kernel-debug:
	@KERNEL=debug scripts/setup

##kunit|run the module's unit tests in the debug kernel
kunit: export KERNEL := debug
kunit: modules
	@scripts/vm kunit

##test-debug [FILTER=…]|the virtual machine's cases on the debug kernel: any complaint of its checkers fails
test-debug: export KERNEL := debug
test-debug: modules userland
	@scripts/vm cases $(FILTER)

##stress [SECONDS=60]|all functions, system calls and tracepoints enabled at once under a mixed load
stress: modules userland
	@scripts/stress $(SECONDS)

##soak [HOURS=1] [OPTIONS='…']|consumers of all kinds for hours, on a machine that changes: nothing grows, no event is missing
soak: modules userland
	@scripts/soak $(or $(HOURS),1) $(OPTIONS)

##test-programs [PROGRAM=PATTERN]|large programs compute under probes what they compute without, and the probes tell what they do
test-programs: modules userland
	@scripts/programs '$(PROGRAM)'

##quick-debug|the unit tests, and those cases on the debug kernel that `make test` runs
quick-debug: export KERNEL := debug
quick-debug: modules userland
	@scripts/vm quick

##demo|a tour of one-liners in the virtual machine
demo: modules userland
	@scripts/vm run 'exec bash scripts/tour'

##check|format, lints, licences
check: setup
	@scripts/check

##test|the checks, the tests of all crates, the cases but for slow ones, and some on the debug kernel
test: modules userland
	@scripts/test

##bench|count what probes cost in instructions, beside bpftrace and the other DTrace for Linux
bench: modules userland
	@scripts/bench

##models|run what goes without locks in every order that the memory model allows
models: setup
	@scripts/models

##instructions [OPERANDS=10000000]|compare each form of an instruction that is done for programs with the processor, so often
instructions: setup
	@scripts/instructions $(OPERANDS)

##miri [ARGS='…']|run the engine's unit tests where undefined behaviour is noticed (needs a nightly compiler)
miri:
	@scripts/miri $(ARGS)

##fuzz SECONDS=N [TARGET='NAME…']|look for inputs that break the compiler or the engine, N seconds each target
fuzz: setup
	@scripts/fuzz '$(SECONDS)' $(TARGET)

##fuzz-vm SECONDS=N [SEED=N]|several users use the device in ways that nobody would, and must not hurt others, for N seconds
fuzz-vm: modules userland
	@scripts/fuzz-vm '$(SECONDS)' $(SEED)

##deb|build Debian's source package and packages
deb: setup
	@scripts/deb

##deb-check|install these packages in a clean Debian, boot that, trace there, and purge them again
deb-check: deb
	@scripts/deb-check

##secure-boot|load the module, signed, in a machine with Secure Boot, which refuses others
secure-boot: modules userland
	@scripts/secure-boot check

##install [DESTDIR=DIR] [PREFIX=DIR] [KDIR=DIR]|install module, command, manual and what goes with them, below DESTDIR
install:
	@PREFIX='$(PREFIX)' SIGN_KEY='$(SIGN_KEY)' SIGN_CERT='$(SIGN_CERT)' scripts/install '$(or $(DESTDIR),/)' '$(KDIR)'

##install SIGN_KEY=FILE SIGN_CERT=FILE|the same, and sign the module for a kernel that demands it

##uninstall [DESTDIR=DIR] [PREFIX=DIR] [KDIR=DIR]|remove what an installation with the same words has put there
uninstall:
	@PREFIX='$(PREFIX)' scripts/install --remove '$(or $(DESTDIR),/)' '$(KDIR)'

.PHONY: help setup modules userland run shell run-boot cases conformance kernel-debug kunit test-debug quick-debug test-programs demo check test bench models instructions stress soak fuzz fuzz-vm deb deb-check secure-boot install uninstall
