# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 600
# @slow: it takes six minutes
# @last: a kernel that was locked down stays locked down
# Who may see what: tests each row of the tables in ARCHITECTURE.md, for each of its subjects, and
# compares the answers with the tables. At the end the rows that exist only in one of the two are
# printed.
. ./member
module=$(cat /run/vm/module)
level=/sys/kernel/security/lockdown
scope=/proc/sys/kernel/yama/ptrace_scope
mount -t securityfs securityfs "${level%/*}" 2>/dev/null
# Debian's default of 3 restricts perf to administrators.
echo 2 >/proc/sys/kernel/perf_event_paranoid
here=$PWD
mkdir /tmp/sight && cd /tmp/sight && chmod 777 .
work=$(command -v rights-work)
for program in dtrace device-check sight-kernel; do cp "$(command -v $program)" .; done
PATH=/tmp/sight:$PATH

# able CAPABILITIES COMMAND...: runs it as a user with these capabilities, for example
# +perfmon,+bpf.
able() { setpriv --reuid 65533 --regid 88 --clear-groups --inh-caps "$1" --ambient-caps "$1" "${@:2}"; }
root() { "$@"; }
member() { as 77 "$@"; }
perfmon() { able +perfmon "$@"; }
perfmon_bpf() { able +perfmon,+bpf "$@"; }
member_perfmon() { setpriv --reuid 65534 --regid 77 --clear-groups --inh-caps +perfmon --ambient-caps +perfmon "$@"; }
perfmon_ptrace() { able +perfmon,+sys_ptrace "$@"; }
# row KEY ANSWER...: prints and records a row.
row() {
	local key=$1 line
	shift
	line=$(printf ', %s' "$@")
	echo "$key:${line#,}" | tee -a walked
}
# said FILE: waits until dtrace traces, or has printed why not.
said() { timeout 60 await 'begun|dtrace:' "$1"; }
pids_of() { grep -lxs "$1" /proc/[0-9]*/comm | cut -d/ -f3; }
load() { rmmod dtrace && insmod "$module" "$@" && chmod 666 /dev/dtrace; }

# opens COMMAND...: the result of opening the device, by a user given by the command.
opens() {
	local said
	said=$("$@" sh -c "exec 3<>${device:-/dev/dtrace}" 2>&1)
	case $said in
	'') echo seen ;;
	*'not permitted') echo EPERM ;;
	*'denied') echo EACCES ;;
	*) echo "$said" ;;
	esac
}
row open-mode "$(opens as 88)"
chmod 666 /dev/dtrace
row open-no-group "$(opens member)"
load group=77
row open-root "$(opens root)"
row open-admin "$(opens able +sys_admin)"
row open-perfmon "$(opens perfmon)"
row open-bpf "$(opens able +bpf)"
row open-ptrace "$(opens able +sys_ptrace)"
row open-stripped "$(opens setpriv --bounding-set -sys_admin,-perfmon --inh-caps -sys_admin,-perfmon)"
row open-member "$(opens member)"
row open-supplementary "$(opens setpriv --reuid 65534 --regid 88 --groups 77)"
row open-others "$(opens as 88)"
row open-namespace "$(opens as 88 unshare -Ur)"
row open-namespace-member "$(opens member unshare -Ur)"
row open-member-perfmon "$(opens member_perfmon)"
# What such a user sees is what `CAP_PERFMON` alone gives.
first='ERROR { printf("%s\n", arg4 == 7 ? "UPRIV" : "fault"); exit(0); }'
# of_member_perfmon CLAUSE: the first answer of a clause about `steps`.
of_member_perfmon() { member_perfmon dtrace -qn "$1 $first" -c '/tmp/sight/o-first steps' 2>/dev/null | grep -m 1 .; }
cp "$work" o-first
row member-perfmon-kernel "$(of_member_perfmon 'fbt::vfs_read:entry { printf("seen\n"); exit(0); }')"
row member-perfmon-memory "$(of_member_perfmon 'syscall::sched_get_priority_max:entry /pid == $target/
	{ printf("%s\n", copyin(uregs[R_RSP], 1) != NULL ? "seen" : "0"); exit(0); }')"
row given "$(sight-kernel given)"
row taken "$(sight-kernel taken)"
row helper "$(device=/dev/dtracehelper opens as 88)"
# An anonymous enabling belongs to users who may do as much as it does.
dtrace -A -o anon.dof -n 'syscall::chdir:entry { trace(1); }' >/dev/null 2>&1
load group=77 anon_file=/tmp/sight/anon.dof
claims() {
	case $("$@" dtrace -ae 2>&1) in
	*'may do more'*) echo EPERM ;;
	*'no anonymous'*) echo none ;;
	*) echo seen ;;
	esac
}
row anonymous "$(claims member)" "$(claims perfmon)" "$(claims perfmon_bpf)" "$(claims root)"

# object KEY COMMAND... WORD...: starts a process whose steps are counted, twice ten; COMMAND is a
# command that executes the rest.
objects=()
object() {
	local key=$1
	shift
	[ -e "o-$key" ] || cp "$work" "o-$key"
	("$@" &)
	timeout 60 sh -c "until [ -e m-$key ]; do sleep 0.1; done"
	objects+=("$key")
}
text_of() { awk '$2 ~ /x/ { sub(/-.*/, "", $1); print $1; exit }' "/proc/$1/maps"; }
# places COMMAND...: whether a user, given by the command, may have a probe in the process $one.
places() {
	case $("$@" device-check place "$one" "$text" 1 </dev/null 2>&1) in
	made) echo seen ;;
	1\ *) echo EPERM ;;
	*'not permitted'*) echo 'no file' ;;
	*) echo other ;;
	esac
}
# gone NAME: waits until no such process exists.
gone() { while [ "$(pids_of "$1")" ]; do sleep 0.1; done; }
steps='syscall::sched_get_priority_max:entry { @[execname] = count(); } BEGIN { printf("begun\n"); } END { printa("%s %@d\n", @); }'
who=(member perfmon perfmon_bpf root)
# fires WHO KEY: how much of what WHO has counted is this object's.
fires() {
	grep -q begun "t-$1" || { echo 'no file'; return; }
	case $(awk -v name="o-$2" '$1 == name { print $2 }' "t-$1") in
	20) echo seen ;;
	'') echo 'not fired' ;;
	*) awk -v name="o-$2" '$1 == name { print $2 " of 20" }' "t-$1" ;;
	esac
}
# walk [COMMAND...]: has all subjects trace the objects, executed by the command, and lets the
# objects continue.
walk() {
	local key subject answers=()
	for key in "${objects[@]}"; do
		one=$(pids_of "o-$key") text=$(text_of "$one")
		member "$@" sight-kernel ptrace "$one" >"p-$key"
		for subject in "${who[@]}"; do places "$subject" "$@" >"l-$subject-$key"; done
	done
	for subject in "${who[@]}"; do
		"$subject" "$@" /tmp/sight/dtrace -qn "$steps" >"t-$subject" 2>&1 &
	done
	for subject in "${who[@]}"; do said "t-$subject"; done
	touch go
	for key in "${objects[@]}"; do gone "o-$key"; done
	kill $(pids_of dtrace) 2>/dev/null
	wait
	for key in "${objects[@]}"; do
		answers=("$(cat "p-$key")" "$(fires member "$key")" "$(cat "l-member-$key")")
		for subject in "${who[@]:1}"; do
			fired=$(fires "$subject" "$key") placed=$(cat "l-$subject-$key")
			[ "$fired" = "$placed" ] && answers+=("$fired") || answers+=("$fired; $placed")
		done
		row "$key" "${answers[@]}"
	done
	objects=()
	rm -f go m-* p-* l-* t-*
}
# waits KEY WORD...: the command line of an object.
waits() { echo "/tmp/sight/o-$1 ${*:2} mark /tmp/sight/m-$1 await /tmp/sight/go steps"; }
own_object() { object "$1" own $(waits "$@") steps; }
own_object own
object capable setpriv --reuid 65534 --regid 77 --clear-groups --inh-caps +net_raw --ambient-caps +net_raw $(waits capable) steps
own_object undumpable undumpable
for key in set-user set-group unreadable; do cp "$work" o-$key; done
chmod 4755 o-set-user; chgrp 88 o-set-group; chmod 2755 o-set-group; chmod 711 o-unreadable
own_object set-user
own_object set-group
# The executing user cannot read it, which setpriv still could.
object unreadable own sh -c "exec $(waits unreadable) steps"
object root root $(waits root) steps
object other-user setpriv --reuid 65533 --regid 77 --clear-groups $(waits other-user) steps
object other-group setpriv --reuid 65534 --regid 88 --clear-groups $(waits other-group) steps
object namespace own unshare -U $(waits namespace) steps
own_object sandboxed sandbox
object goes-secret own $(waits goes-secret) undumpable steps
object comes-back own $(waits comes-back undumpable) dumpable steps
mkdir s && cp "$work" s/o-goes-root && chmod 4755 s/o-goes-root
object goes-root own $(waits goes-root) exec /tmp/sight/s/o-goes-root steps
walk
own_object from-sandbox
cp "$work" sandbox
walk /tmp/sight/sandbox sandbox exec /usr/bin/env
own_object from-ns
walk unshare -U
echo 1 >$scope
own_object yama-1
own_object yama-1-named ptracer any
walk
# A child is checked against its parent.
cp "$work" o-child
# child COMMAND...: how a user sees a child, by its system calls and by a place in it.
child() {
	local clause
	for clause in 'syscall::sched_get_priority_max:entry /pid == $target/' 'pid$target:a.out:step:entry'; do
		"$@" dtrace -qn "$clause { @ = count(); } END { printa(\"%@d\n\", @); }" -c '/tmp/sight/o-child steps steps' 2>/dev/null |
			grep -q '^20$' && echo seen || case $clause in sys*) echo 'not fired' ;; *) echo EPERM ;; esac
	done
}
mapfile -t answers < <(sight-kernel child; child member)
for subject in "${who[@]:1}"; do answers+=("$(child "$subject" | uniq | paste -sd ';' | sed 's/;/; /')"); done
row yama-1-child "${answers[@]}"
echo 2 >$scope
own_object yama-2 ptracer any
walk
echo 0 >$scope

# What is shown of a process: of the member's own at a system call, and of another user's at a
# timer.
cp "$work" o-shown
cat >shown.d <<'end'
PROBE /WHERE && !told/ { told = 1; it = 1; }
ROW(pid, pid != 0)
ROW(tid, tid != 0)
ROW(ppid, ppid != 0)
ROW(uid, uid != 0)
ROW(gid, gid != 0)
ROW(execname, execname != "")
ROW(psinfo, curpsinfo->pr_psargs != "")
ROW(execargs, execargs != "")
ROW(argument, ARG)
ROW(vtimestamp, vtimestamp != 0)
ROW(progenyof, progenyof(1))
ROW(copyin, *(int *)copyin(0x555555554000, 4) == 0x464c457f)
ROW(copyinstr, substr(copyinstr(0x555555554000), 1, 3) == "ELF")
ROW(registers, uregs[R_RSP] != 0)
ROW(ustack, ustackdepth != 0)
ROW(ucaller, ucaller != 0)
PROBE /it/ { exit(0); }
BEGIN { printf("begun\n"); }
ERROR { printf("= %s\n", arg4 == 6 ? "KPRIV" : arg4 == 7 ? "UPRIV" : "fault"); }
end
# script FILE PROBE WHERE ARG: generates the program of FILE for these.
script() {
	sed -e "s/^ROW(\([-a-z]*\), \(.*\))\$/PROBE \/it\/ { printf(\"# \1\\\\n\"); } PROBE \/it\/ { printf(\"= %s\\\\n\", (\2) ? \"seen\" : \"0\"); }/" \
		-e "s|PROBE|$2|g" -e "s|WHERE|$3|g" -e "s|ARG|$4|g" "$1"
}
# answers FILE: prints the answers of a script, one line each with its key.
answers() { awk '/^# / { key = $2 } /^= / { print key, $2 }' "$1"; }
script shown.d 'syscall::sched_get_priority_max:entry' 'pid == $target' 'arg0 != 99' >own.d
member dtrace -qs own.d -c 'setarch -R /tmp/sight/o-shown steps' >t-own 2>e-own
answers t-own >a-own
# One on each CPU, because a tick may fire on any of them.
spin() { taskset -c "$1" setpriv --reuid 65533 --regid 88 --clear-groups setarch -R /tmp/sight/o-shown spin 600000; }
for cpu in $(seq 0 $(($(nproc) - 1))); do spin "$cpu" & done
for subject in member perfmon perfmon_ptrace perfmon_bpf root; do
	where='execname == "o-shown" \&\& arg1 != 0'
	[ $subject = member ] && where='pid != $pid'
	script shown.d tick-29 "$where" 'arg1 != 0' >tick.d
	$subject timeout 60 dtrace -qs tick.d >t-$subject 2>e-$subject
	answers t-$subject >a-$subject
done
while read -r key answer; do
	row shown-$key "$answer" $(for s in member perfmon perfmon_ptrace perfmon_bpf root; do awk -v key=$key '$1 == key { print $2 }' a-$s; done)
done <a-own

# What a timer shows: a process of the member's own, another user's, and what runs in the kernel.
cp "$work" o-mine
(own /tmp/sight/o-mine spin 600000) &
(own sh -c 'cp /bin/dd /tmp/sight/o-calls; exec /tmp/sight/o-calls if=/dev/zero of=/dev/null bs=1M' 2>/dev/null) &
timers='profile-97 { @[execname, arg1 == 0 ? "kernel" : "user"] = count(); } tick-29 { @["tick", execname] = count(); }
	tick-4s { exit(0); } END { printa("%s %s %@d\n", @); }'
for subject in member perfmon root; do $subject dtrace -qn "$timers" >t-$subject 2>&1; done
# timed KEY PATTERN: records in which traces the pattern was found.
timed() {
	local s answers=()
	for s in member perfmon root; do grep -q "$2" t-$s && answers+=(seen) || answers+=('not fired'); done
	row "$1" "${answers[@]}"
}
timed timer-own '^o-mine user'
timed timer-other '^o-shown user'
timed timer-kernel 'kernel'
timed tick-other '^tick o-shown'
kill $(pids_of o-mine) $(pids_of o-shown) $(pids_of o-calls)
wait 2>/dev/null

# Places in one file, in two processes, carried by the kernel's own uprobes.
load group=77 own_breakpoints=N
cp "$work" o-wide-own && ln o-wide-own o-wide-other
own_object wide-own
object wide-other root $(waits wide-other) steps
two=($(pids_of o-wide-own) $(pids_of o-wide-other))
root dtrace -qn "pid${two[0]}:a.out:step:entry, pid${two[1]}:a.out:step:entry { @[execname] = count(); } BEGIN { printf(\"begun\n\"); }
	END { printa(\"%s %@d\n\", @); }" -p "${two[0]}" -p "${two[1]}" >t-root 2>&1 &
said t-root
listed() { "$@" dtrace -x nolibs -ln 'pid*:o-wide-other::' 2>/dev/null | grep -q step && echo seen || echo 'not listed'; }
row other-places "$(listed member)" "$(listed root)"
(own /tmp/sight/dtrace -Zqn 'pid*:::entry { @[execname] = count(); } BEGIN { printf("begun\n"); } END { printa("%s %@d\n", @); }') >t-member 2>&1 &
said t-member
touch go
for key in "${objects[@]}"; do gone "o-$key"; done
kill $(pids_of dtrace) 2>/dev/null
wait
for key in "${objects[@]}"; do row "$key" "$(fires member "$key")" "$(fires root "$key")"; done
objects=()
rm -f go m-* t-*

# What is visible of the kernel, depending on its lockdown, to users who may open the device. `a / b
# / c`: not locked down, for integrity, for confidentiality.
load group=77
cp "$(command -v sleep)" o-other
./o-other 3600 &
one=$! text=$(text_of $!)
cat >kernel.d <<'end'
PROBE /WHERE && !it/ { it = 1; }
ROW(load, *(long *)$1 != 0)
ROW(string, stringof((char *)$2) != "")
ROW(curthread, (long)curthread != 0)
ROW(caller, caller != 0)
ROW(stack, stackdepth != 0)
ROW(file, (long)getf(0) != 0)
ROW(lock, mutex_owned((struct mutex *)$1) != 99)
ROW(own-call, pid != 0)
ROW(own-memory, copyin(uregs[R_RSP], 1) != NULL)
PROBE /it/ { exit(0); }
ERROR { printf("= %s\n", arg4 == 6 ? "KPRIV" : arg4 == 7 ? "UPRIV" : "fault"); }
end
script kernel.d 'syscall::sched_get_priority_max:entry' 'pid == $target' 1 >load.d
cat >arguments.d <<'end'
fbt::vfs_read:entry /pid == $target/ { printf("# argument\n"); printf("= %s\n", arg0 != 0 ? "seen" : "0"); printf("# pointed\n"); }
fbt::vfs_read:entry /pid == $target/ { printf("= %s\n", ((struct file *)arg0)->f_mode != 0 ? "seen" : "0"); }
kinst::vfs_read:0 /pid == $target && !seen/ { seen = 1; printf("# registers\n"); printf("= %s\n", regs[R_RDI] != 0 ? "seen" : "0"); }
fbt::vfs_read:return /pid == $target/ { exit(0); }
ERROR { printf("= %s\n", arg4 == 6 ? "KPRIV" : arg4 == 7 ? "UPRIV" : "fault"); }
end
data=$(awk '$3 == "jiffies" { print "0x" $1 }' /proc/kallsyms) text_of_kernel=$(awk '$3 == "linux_banner" { print "0x" $1 }' /proc/kallsyms)
# Root has created this probe.
dtrace -qn 'kinst::vfs_write:0 { @ = count(); } BEGIN { printf("begun\n"); }' >t-made 2>&1 &
said t-made
may=(member perfmon perfmon_ptrace perfmon_bpf root)
# kernel WHO: the rows of a user who may open the device.
kernel() {
	local what
	for what in sample kprobe kernel user write; do echo "by-$what $("$1" sight-kernel $what)"; done
	echo "give-table $("$1" sight-kernel table)"
	echo "frame-names $("$1" sight-kernel names)"
	"$1" device-check sight "$one" "$text"
	"$1" dtrace -qs load.d -c '/tmp/sight/sandbox steps' "$data" "$text_of_kernel" 2>e-load-$1 >t-load
	answers t-load
	echo "losses $("$1" sh -c 'exec 3<>/dev/dtrace; grep -q dtrace-lost /proc/self/fdinfo/3 && echo seen')"
	"$1" dtrace -qs arguments.d -c 'cat /proc/uptime' 2>e-arguments-$1 >t-arguments
	# Without rights over the kernel there is no kinst probe either.
	if grep -q -e 'need rights over the kernel' -e 'not match any probes' e-arguments-$1; then
		printf '%s EACCES\n' argument pointed registers
	else
		answers t-arguments
	fi
}
for to in none integrity confidentiality; do
	[ $to = none ] || echo $to >$level
	for subject in "${may[@]}"; do kernel $subject >k-$to-$subject; done
done
answer() { awk -v key="$1" '$1 == key { sub(/^[^ ]* /, ""); print }' "k-$2-$3"; }
while read -r key _; do
	answers=()
	for subject in "${may[@]}"; do
		for to in none integrity confidentiality; do answer "$key" $to $subject; done >a
		[ "$(uniq a | wc -l)" = 1 ] && answers+=("$(uniq a)") || answers+=("$(paste -sd / a | sed 's:/: / :g')")
	done
	row "$key" "${answers[@]}"
done <k-none-root
kill $(pids_of dtrace) "$one"
wait

# Yama's last level cannot be reset either.
echo 3 >$scope
rm -f go
objects=()
own_object yama-3 ptracer any
walk

# The rows of the tables, in the form in which they are printed above.
awk -F ' *[|] *' '/^## / { on = /Who may see what/ } on && /^[|] `/ {
	gsub("`", "", $2); line = $2 ":"
	for (n = 4; n < NF - 1; n++) line = line (n > 4 ? ", " : " ") $n
	print line
}' "$here/../../../ARCHITECTURE.md" | sort >table
sort walked | diff table - | sed -n 's/^< /only in the table: /p; s/^> /only here: /p'
