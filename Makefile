# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: GPL-2.0-only
#
# Every entry point. Recipes are one line each; the work is done in scripts/.

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.DEFAULT_GOAL := help

##help: this list
help:
	@sed -n 's/^##//p' Makefile | column -t -s: -l 2

##setup: make the build root, fetch the kernel, prepare its Rust metadata (once)
setup:
	@scripts/setup

.PHONY: help setup
