# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every entry point. Recipes are short; scripts/, packaging/ and qemu-tests/runs/ do the work.

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.DEFAULT_GOAL := help

##help|this list
help:
	@sed -n 's/^##//p' Makefile | while IFS='|' read -r a b; do \
		if [ -n "$$b" ]; then printf '  make %-26s %s\n' "$$a" "$$b"; else printf '\n%s\n' "$$a"; fi; \
	done

##Set up and build (scripts/)

##setup|create the build root, fetch the kernel, prepare its Rust metadata (once)
setup:
	@scripts/setup

##kernel-debug|build the kernel for KERNEL=debug: KASAN, lockdep, KUnit (once, half an hour)
kernel-debug:
	@KERNEL=debug scripts/setup

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

##Run in a virtual machine (scripts/vm, qemu-tests/)

##demo|show a tour of one-liners in the virtual machine
demo: modules userland
	@scripts/vm run 'exec bash qemu-tests/guest/tour'

##run CMD='…'|boot the kernel in a virtual machine, load the module, and run the command
run: export DTRACE_CMD = $(value CMD)
run: modules userland
	@[ -n "$$DTRACE_CMD" ] || { echo "usage: make run CMD='dtrace -l'" >&2; exit 2; }
	@scripts/vm run "$$DTRACE_CMD"

##shell|the same with an interactive shell
shell: modules userland
	@scripts/vm shell

##run-boot D='…'|trace a boot with `dtrace …`, with an initramfs that loads the module first
run-boot: modules userland
	@qemu-tests/runs/boot run $(D)

##Test (scripts/, qemu-tests/)

##check|check format, lints and licences
check: setup
	@scripts/check

##test|run the checks, all crates' tests, the fast cases, and some on the debug kernel
test: modules userland
	@scripts/test

##cases [FILTER=…]|run the virtual machine's cases in qemu-tests/cases, including slow ones
cases: modules userland
	@scripts/vm cases $(FILTER)

##test-debug [FILTER=…]|run the cases on the debug kernel; a report of its checkers is a failure
test-debug: export KERNEL := debug
test-debug: modules userland
	@scripts/vm cases $(FILTER)

##kunit|run the module's unit tests in the debug kernel
kunit: export KERNEL := debug
kunit: modules
	@scripts/vm kunit

##quick-debug|run the unit tests and the cases that `make test` runs on the debug kernel
quick-debug: export KERNEL := debug
quick-debug: modules userland
	@scripts/vm quick

##conformance [SUITE='WORD…']|run the other DTrace's suite, or its cases by class or path
conformance: modules userland
	@qemu-tests/runs/conformance $(SUITE)

##secure-boot|load the signed module in a machine with Secure Boot
secure-boot: modules userland
	@qemu-tests/runs/secure-boot

##Test for long, and measure (qemu-tests/runs/, scripts/)

##stress [SECONDS=60]|trace all functions, system calls and tracepoints at once under load
stress: modules userland
	@qemu-tests/runs/stress $(SECONDS)

##soak [HOURS=1] [OPTIONS='…']|run all kinds of consumers for hours; find leaks and missing events
soak: modules userland
	@qemu-tests/runs/soak $(or $(HOURS),1) $(OPTIONS)

##test-programs [PROGRAM=PATTERN]|trace large programs; check their results and what probes report
test-programs: modules userland
	@qemu-tests/runs/programs '$(PROGRAM)'

##fuzz SECONDS=N [TARGET='NAME…']|fuzz the compiler and the engine, N seconds per target
fuzz: setup
	@scripts/fuzz '$(SECONDS)' $(TARGET)

##fuzz-vm SECONDS=N [SEED=N]|fuzz the devices as several users, who must not harm each other
fuzz-vm: modules userland
	@qemu-tests/runs/fuzz-vm '$(SECONDS)' $(SEED)

##models|run lock-free code in every order that the memory model allows
models: setup
	@scripts/models

##instructions [OPERANDS=10000000]|compare each emulated instruction form with the processor
instructions: setup
	@scripts/instructions $(OPERANDS)

##miri [ARGS='…']|run the engine's unit tests in Miri (needs a nightly compiler)
miri:
	@scripts/miri $(ARGS)

##bench|measure probe costs in instructions, next to bpftrace and the other DTrace
bench: modules userland
	@qemu-tests/runs/bench

##Install and package (packaging/)

##install [DESTDIR=DIR] [PREFIX=DIR] [KDIR=DIR]|install module, command, manual etc.
install:
	@PREFIX='$(PREFIX)' SIGN_KEY='$(SIGN_KEY)' SIGN_CERT='$(SIGN_CERT)' packaging/install '$(or $(DESTDIR),/)' '$(KDIR)'

##install SIGN_KEY=FILE SIGN_CERT=FILE|the same, with a signed module

##uninstall [DESTDIR=DIR] [PREFIX=DIR] [KDIR=DIR]|remove it; use the same variables
uninstall:
	@PREFIX='$(PREFIX)' packaging/install --remove '$(or $(DESTDIR),/)' '$(KDIR)'

##deb|build the Debian source package and binary packages
deb: setup
	@packaging/deb

##deb-check|install these packages in a clean Debian, boot it, trace, and purge them
deb-check: deb
	@packaging/deb-check

.PHONY: help setup modules userland run shell run-boot cases conformance kernel-debug kunit test-debug quick-debug test-programs demo check test bench models instructions stress soak fuzz fuzz-vm deb deb-check secure-boot install uninstall
