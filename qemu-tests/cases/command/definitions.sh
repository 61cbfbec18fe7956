# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# -h makes a header from a provider definition; for an invalid definition it reports the error and
# writes nothing.
header() { dtrace -h -s "$1" 2>&1; echo "status $?"; }
cd "$(mktemp -d)" || exit 1
printf 'provider app { probe start(int id) : (int id); probe stop(); };\n' >good.d
printf 'provider app {\n\tprobe start()\n};\n' >unfinished.d
printf '\nprovider app { probe start(int) : (int); };\n' >nameless.d
for file in good unfinished nameless; do header $file.d; done
ls *.h
