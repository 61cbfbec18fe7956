# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Frames of Perl code appear below those of the evaluators that execute it.
# frames FILE: prints the frames in brackets, and `eval` for each frame of the evaluator, of one
# call of getppid.
frames() {
	dtrace -qn 'syscall::getppid:entry /pid == $target/ { ustack(60); exit(0); }' -c "perl $1" |
		sed -nE 's/^ +\[ (.*) \]$/\1/; s#/tmp/##; s/^ +perl`Perl_runops_standard.*/eval/; /^(eval|[^ ].*)$/p' | paste -sd' ' | sed 's/ eval/\neval/g'
}
echo 'a block of sort, an anonymous function, a function that calls itself'
cat >/tmp/sort.pl <<'end'
package Shop;
sub down { my $n = shift; if ($n) { down($n - 1) } else { getppid() } }
package main;
sub outer { my @x = sort { Shop::down(2); $a <=> $b } (2, 1); }
my $anon = sub { outer() };
eval { $anon->() };
end
frames /tmp/sort.pl
echo 'a function that is called last in such a block, in its own way, by a pattern, and by what is deferred'
cat >/tmp/last.pl <<'end'
use feature 'defer'; no warnings;
sub asks { getppid(); 0 }
sub sorts { my @x = sort { asks($a, $b) } (2, 1); }
sub strings { my @x = sort { eval 'asks()' } (2, 1); }
sub matches { 'x' =~ /x(?{ asks() })/ }
sub defers { defer { asks() } my $x = 1; }
&{$ARGV[0]}();
end
for way in sorts strings matches defers; do frames "/tmp/last.pl $way"; done
echo 'a destructor in an eval that C has called'
cat >/tmp/within.pl <<'end'
package Shop;
use overload '<=>' => \&order;
sub DESTROY { getppid() }
sub order { eval { my $x = bless [], 'Shop'; undef $x; }; 0 }
sub outer { my @x = sort { $a <=> $b } map { bless {} } 1, 2; }
outer();
end
frames /tmp/within.pl
echo 'a function that sort calls, and one in a package within another'
cat >/tmp/order.pl <<'end'
package Shop::Order;
sub by_size { down(1); $a <=> $b }
sub down { my $n = shift; if ($n) { down($n - 1) } else { getppid() } }
sub outer { my @x = sort by_size (2, 1); }
outer();
end
frames /tmp/order.pl
echo 'C calls, and catches: an eval in it has no evaluator of its own'
cat >/tmp/destroy.pl <<'end'
package Shop;
sub down { my $n = shift; if ($n) { down($n - 1) } else { getppid() } }
sub DESTROY { eval { down(1) }; }
sub outer { my $x = bless {}, 'Shop'; undef $x; }
outer();
end
frames /tmp/destroy.pl
echo 'C calls, and does not catch: an eval has'
cat >/tmp/overload.pl <<'end'
package Shop;
use overload '<=>' => \&order;
sub order { eval { down(1) }; 0 }
sub down { my $n = shift; if ($n) { down($n - 1) } else { getppid() } }
sub outer { my @x = sort { $a <=> $b } map { bless {} } 1, 2; }
outer();
end
frames /tmp/overload.pl
echo 'which goes on when the eval has been left'
sed 's/eval { down(1) }; 0/eval { 1 }; down(1); 0/' /tmp/overload.pl >/tmp/left.pl
frames /tmp/left.pl
echo 'code in a string, and in another file'
cat >/tmp/More.pm <<'end'
package More;
sub asks { eval 'getppid()' }
asks();
1;
end
echo 'sub requires { require "/tmp/More.pm" } requires();' >/tmp/require.pl
frames /tmp/require.pl
echo 'before the program begins'
echo 'BEGIN { getppid() }' >/tmp/begin.pl
frames /tmp/begin.pl
echo 'off'
dtrace -x ustackinterp=off -qn 'syscall::getppid:entry /pid == $target/ { ustack(60); exit(0); }' -c 'perl /tmp/sort.pl' | grep -c '\['
echo 'under full load, what is there is right'
cat >/tmp/load.pl <<'end'
sub leaf { my $x = 0; $x += $_ for 1 .. 20; $x }
sub middle { leaf() + leaf() }
my $end = time + 3;
middle() while time < $end;
end
dtrace -qn 'profile-197 /pid == $target && arg1/ { @[ustack(60)] = count(); }' -c 'perl /tmp/load.pl' >/tmp/seen
sed -nE 's/^ +\[ (.*):[0-9]+ \]$/\1/p' /tmp/seen | sort -u
# A caller is below its callee.
awk '/^ +\[ / { chain = chain " " $2 } /^ +[0-9]+$/ { if (chain) print chain; chain = "" }' /tmp/seen | sort -u
echo 'between two comparisons of sort there is none'
cat >/tmp/sorts.pl <<'end'
sub by_block { my @x = sort { $a->{n} <=> $b->{n} } @_; }
sub by_name { my @x = sort compare @_; }
sub compare { $a->{n} <=> $b->{n} }
my @all = map { { n => $_ * 7919 % 1000 } } 1 .. 1000;
my $end = time + 4;
while (time < $end) { by_block(@all); by_name(@all) }
end
dtrace -qn 'profile-397 /pid == $target && arg1/ { @[ustack(60)] = count(); }' -c 'perl /tmp/sorts.pl' >/tmp/seen
# Few samples are taken while perl sets up a context, so up to 5 % may be wrong.
awk '/`Perl_runops/ { is_run = 1 } /^ +\[ / { chain = chain " " $2 } /^ +[0-9]+$/ {
	if (is_run) all += $1; if (is_run && chain !~ /^( main::compare)?( main::by_(block|name))? \?$/) { wrong += $1; print "wrong:" chain >"/dev/stderr" }
	if (chain ~ /by_block/) block = 1; if (chain ~ /by_name/) name = 1; chain = is_run = "" }
	END { print (all > 200), (wrong * 20 < all), block, name }' /tmp/seen
rm /tmp/*.pl /tmp/More.pm /tmp/seen
