# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A fault is reported through ERROR, and tracing continues. On a terminal the report shows the
# source.
dtrace -qn 'BEGIN { printf("%d %s", *(int *)0, "x"); } BEGIN { printf("alive\n"); exit(0); }'
cat >/tmp/faults.d <<'end'
BEGIN
{
	@[execname, *(int *)0x10] = count();
}
BEGIN
{
	exit(0);
}
end
script -qec 'dtrace -qs /tmp/faults.d' /dev/null | tr -d '\r'
rm -f /tmp/faults.d
