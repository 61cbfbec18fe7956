# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every provider has its probes; those of kinst are created on request.
provider-check list | grep -v '^kinst '
# Each probe of a provider with documented names is on its provider's page, and a case in this
# folder names it.
documented="io ip lockstat proc sched sysinfo tcp udp vminfo"
dtrace -l $(printf ' -P %s' $documented) >/tmp/list-probes
awk 'FILENAME == "/tmp/list-probes" {
		if (!(("cases", $NF) in named) && $NF != "NAME") print "no case names " $2 ":::" $NF
		if (!(($2, $NF) in named) && $NF != "NAME") print "the page of " $2 " does not name " $NF
		next
	}
	{
		where = "cases"
		if (FILENAME ~ /\.md$/) { where = FILENAME; sub(/.*\//, "", where); sub(/\.md$/, "", where) }
		count = split($0, words, /[^A-Za-z0-9_-]+/)
		for (n = 1; n <= count; n++) named[where, words[n]] = 1
	}' ./*.sh $(printf ' ../../../docs/providers/%s.md' $documented) /tmp/list-probes
