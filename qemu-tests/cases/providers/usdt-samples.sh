# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# The samples of programs with probes, in C, C++, Rust and Python: dtrace sees what they pass,
# whether it starts before or after them.
python="python3 -B $PWD/../../../samples/python/shop.py"
mkdir /tmp/samples && cd /tmp/samples || exit 1
begun() { dtrace -x temporal -x holdtime=1sec -o seen "$@" 2>&1; sed '/./!d' seen; rm seen; }
for shop in shop-c shop-c++ shop-rust "$python"; do
	echo "${shop##*/}"
	$shop 2
	begun -qn 'shop$target:::sold { printf("%d %s\n", (int)arg0, copyinstr(arg1)); }' -Z -c "$shop 2"
	begun -qn 'shop*:::sold /pid == $target/ { printf("%d %s\n", (int)arg0, copyinstr(arg1)); }
		shop*:::receipt /pid == $target/ { printf("%s\n", copyinstr(arg0)); }' -Z -c "$shop 2"
done

echo 'that run already'
for shop in shop-c shop-c++ shop-rust "$python"; do
	$shop 10000 >/dev/null &
	pids="$pids $!"
	await shop /proc/$!/maps
done
dtrace -ln 'shop*:::' | awk 'NR > 1 { sub(/[0-9]+$/, "", $2); print $2, $3, $NF }' | sort
dtrace -lvn 'shop*:::sold' | grep -A 2 'Argument Types' | grep args | sort
dtrace -qn 'shop*:::sold { self->price = (int)arg0; self->what = copyinstr(arg1); }
	shop*:::receipt /self->price && !seen[execname]/ { this->ends = strjoin(self->what, strjoin(" for ", lltostr(self->price)));
		printf("%s %s\n", execname, strstr(copyinstr(arg0), this->ends) == this->ends ? "has what it sold" : copyinstr(arg0)); seen[execname] = 1; }
	shop*:::receipt /seen["shop-c"] && seen["shop-c++"] && seen["shop-rust"] && seen["python3"]/ { exit(0); }' | sed '/./!d' | sort
kill $pids
wait
cd / && rm -r /tmp/samples
