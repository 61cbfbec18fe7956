# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 400
# @slow: it runs each script for seconds
# Demonstrations about one process, on programs that call, allocate, lock and import a known number
# of times. Offsets within functions are removed, and times except those for which the program
# sleeps.
demo=../../../userland-lib/demo
t() { echo "$1"; dtrace -x holdtime=1sec -s $demo/$1.d "${@:2}" 2>&1 | sed -E 's/\+0x[0-9a-f]+//g'; }
ours() { grep -E "$1"; }

t plockstat -c demo-locks >/tmp/locks
# Each sleep takes at least 20 ms, and so does holding the lock meanwhile.
awk '/: (sleeps|holds)$/ { what = $1 $2; next }
	$3 ~ /^demo-locks/ { row = what " " $3 " " $4; n[row] += $1
		if (what ~ /sleeps/ || $4 ~ /while_others/) long[row] = ($2 >= 20000000) ? "long" : "short" }
	END { for (row in n) print row, n[row] (row in long ? " " long[row] : "") }' /tmp/locks | sort
# By which call paths, and how often: a row of the distribution has the count at its end.
sed -n '/^Sleeps by/,$p' /tmp/locks | awk '/`sleeps_/ { way = way " " $1 }
	/^demo-locks`[a-z]*$/ && !/sleeps/ && !/thread/ { lock = $1 }
	/\|@/ { n += $NF } /^$/ { if (n) print lock, way, n; if (n) way = n = "" }' | sort
timeout 100 dtrace -s $demo/plockstat.d 1 -c 'sleep 600' >/tmp/second && grep -c 'sleeps$' /tmp/second

echo pid-flow
dtrace -s $demo/pid-flow.d a.out '[mld]*[dpe]*' -c demo-calls | awk '$3 ~ /^(->|<-)$/ && $4 ~ /^(main|middle|leaf|deep)$/ { sub(/^ *[0-9]+ +[0-9]+  /, ""); print }'
t pid-calls a.out -c demo-calls | ours 'middle|leaf|deep|keeps|gives_back'
# Sorted, because the order by time is not known.
t pid-times a.out -c demo-calls | awk '/ (middle|leaf|deep)$/ { print $4, $1, ($2 >= $3), ($3 > 0) }' | sort
t malloc-sizes -c demo-calls | ours '[1-9] *$|demo-calls|alloc'
t malloc-kept -c demo-calls | ours demo-calls | tr -s ' '

t python-gc -c "python3 -c 'import gc; gc.disable()
class Ring: pass
def rings(n):
    for i in range(n): r = Ring(); r.r = r
gc.collect(); rings(123); gc.collect(0); rings(45); gc.collect(1)'" | awk '$2 == "python3" && $5 > 40 && $3 < 2 && $4 > 0 { print $3, $5 }' 
mkdir -p /tmp/modules && cd /tmp/modules || exit
echo 'import second, third' >first.py
echo 'import third' >second.py
: >third.py
demo=$OLDPWD/$demo
t python-imports -c "python3 -c 'import sys; sys.path.insert(0, \".\")
try: import nowhere
except ImportError: pass
import first, second'" | awk '/nowhere|first|second|third/ { print $3, $4, ($2 > 0) }'
t python-audit -c "python3 -c 'import sys; sys.audit(\"ours\"); sys.audit(\"ours\"); open(\"/etc/passwd\")'" | ours ' (ours|cpython.run_command) ' | tr -s ' '
rm -r /tmp/modules /tmp/locks /tmp/second

cat >/tmp/shop.py <<'end'
class Shop:
    def __init__(self): self.n = 0
    def sell(self, n):
        for i in range(n): self.one(i)
    def one(self, i): self.n += add(i)
def add(i): return i + 1
def turns():
    yield 1
    yield 2
Shop().sell(3)
list(turns())
end
t python-calls -c 'python3 -X perf /tmp/shop.py' | ours '/tmp/shop.py$|^python' | tr -s ' ' | sort
dtrace -s $demo/python-flow.d Shop.sell -c 'python3 -X perf /tmp/shop.py' | sed -E '/(->|<-)/!d; s/^ *[0-9]+  //'
t python-times -c 'python3 -X perf /tmp/shop.py' | awk '/^python/ { print } / (Shop\.[a-z]+|add|turns)$/ { print $4, $1, ($2 >= $3), ($3 > 0) }' | sort
cat >/tmp/shop.pl <<'end'
package Shop;
sub new { return bless {}, shift }
package Other::Shop;
sub new { return bless [], 'Other::Shop' }
package main;
Shop->new for 1..7;
Other::Shop->new for 1..3;
end
t perl-objects -c 'perl /tmp/shop.pl' | ours '/tmp/shop.pl|^perl' | tr -s ' '
t cxx-throws -c demo-throws | ours 'demo-throws|^cxx' | tr -s ' ' | sort
rm /tmp/shop.*

cat >/tmp/turns.py <<'end'
import sys, time
def nap():
    for n in range(5): time.sleep(0.05)
def spin():
    end = time.monotonic() + 3
    while time.monotonic() < end: sum(range(1000))
{'nap': nap, 'spin': spin}[sys.argv[1]]()
end
# The first sleep may be at another place in the line's code than later ones, which is another key.
t offcpu-stacks -c 'python3 /tmp/turns.py nap' | awk '/^offcpu/ { print } /`schedule$/ { kernel = 1 } /\[ nap .*:3 \]/ { python = kernel }
	/^ +[0-9]+$/ { if (python) naps += $1; kernel = python = 0 } END { if (naps >= 250000000) print "naps" }'
t profile -c 'python3 /tmp/turns.py spin' | awk '/^profile$/ { print } /^python3$/ { ours = 1 } /\[ spin .*:6 \]/ { python = ours } /^ +[0-9]+$/ { if (python) spins = 1; ours = python = 0 }
	END { if (spins) print "spins" }'
rm /tmp/turns.py
