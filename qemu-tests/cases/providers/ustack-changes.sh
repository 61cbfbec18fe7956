# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# A CPU's cache of walked stacks becomes invalid when the mappings of the program change or unwind
# tables are removed.
cat >/tmp/hop.c <<'end'
void hop(void (*f)(void))
{
	volatile char room[SIZE];

	room[0] = 1;
	f();
	room[SIZE - 1] = 2;
}
end
cat >/tmp/hops.c <<'end'
#include <dlfcn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static __attribute__((noinline, noclone)) void last(void)
{
	syscall(SYS_getppid);
}

int main(void)
{
	static const char *const paths[] = { "/tmp/small.so", "/tmp/large.so" };
	void *first = NULL;
	int n, moved = 0;

	for (n = 0; n < 100; n++) {
		void *library = dlopen(paths[n % 2], RTLD_NOW);
		void (*hop)(void (*)(void)) = dlsym(library, "hop");

		first = first ? first : hop;
		moved += hop != first;
		hop(last);
		hop(last);
		dlclose(library);
	}
	printf("moved %d times\n", moved);
	return 0;
}
end
# The libraries have the same instructions at the same offsets, except for the numbers in them, but
# different unwind rules.
gcc -O2 -fomit-frame-pointer -fno-stack-protector -fno-stack-clash-protection -fPIC -shared -DSIZE=0x400 -o /tmp/small.so /tmp/hop.c
gcc -O2 -fomit-frame-pointer -fno-stack-protector -fno-stack-clash-protection -fPIC -shared -DSIZE=0x800 -o /tmp/large.so /tmp/hop.c
gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o /tmp/hops /tmp/hops.c

# An address at which both libraries were mapped has no name. The address of hop() has the same
# third-last hexadecimal digit in both, which identifies it.
page=$(nm /tmp/small.so | awk '$3 == "hop" { print substr($1, 14, 1) }')
[ "$(nm /tmp/large.so | awk '$3 == "hop" { print substr($1, 14, 1) }')" = "$page" ] || echo 'hop is elsewhere'
# names: prints the functions of each kind of stack and how often it occurred.
names() { awk '/^ +0x[0-9a-f]+'"$page"'[0-9a-f][0-9a-f]$/ { stack = stack "hop " } /`/ { sub(/.*`/, ""); sub(/\+.*/, ""); stack = stack $0 " " } NF == 1 && $1 ~ /^[0-9]+$/ { print stack $1; stack = "" }' | sed -E 's/0x[0-9a-f]+|__libc_start_main|syscall/other/g; s/(other )+/other /g' | sort; }

echo 'libraries that are mapped where others were'
# The first run lets dtrace make the unwind tables of both libraries.
dtrace -x switchrate=100hz -qn 'syscall::getppid:entry /execname == "hops"/ { ustack(); } tick-60s { exit(1); }' >/tmp/stacks 2>&1 &
for n in {1..100}; do
	/tmp/hops >/tmp/moved
	[ "$(grep -c 'small.so`hop' /tmp/stacks)" != 0 ] && [ "$(grep -c 'large.so`hop' /tmp/stacks)" != 0 ] && [ "$(grep -c '`_start' /tmp/stacks)" != 0 ] && break
done
cat /tmp/moved
dtrace -qn 'syscall::getppid:entry /execname == "hops"/ { @[ustack()] = count(); }' -c /tmp/hops | grep -v moved | names
kill $!
wait $!

echo 'tables that go while they are used'
room=$(cat /sys/module/dtrace/parameters/unwind_tables)
dtrace -x switchrate=100hz -qn 'syscall::getppid:entry /execname == "busy" || strstr(execname, "few-") != NULL/ { @[ustackdepth] = count(); n++; }
	END { printf("%s\n", n > 100 ? "many" : "few"); clear(@); trunc(@); }' >/tmp/seen 2>&1 &
tracer=$!
cp "$(command -v ustack-work)" /tmp/busy
while :; do /tmp/busy deep deep deep deep; done &
busy=$!
echo 200000 >/sys/module/dtrace/parameters/unwind_tables
for n in {1..20}; do
	cp "$(command -v ustack-work)" /tmp/few-$n
	/tmp/few-$n deep
	sleep 0.1
done
echo "$room" >/sys/module/dtrace/parameters/unwind_tables
kill $busy
wait $busy
kill $tracer
wait $tracer
grep . /tmp/seen
dtrace -qn 'syscall::getppid:entry /pid == $target/ { @[ustack()] = count(); }' -c 'ustack-work deep deep' | names
