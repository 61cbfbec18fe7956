# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# @limit: 120
# Lost segments, with both versions of IP: tcps_retransmit agrees with the sequence numbers on
# whether a segment was sent before. A segment that consumes no sequence numbers is not a
# retransmission. connect-request fires once.
cat >/tmp/loss.d <<'D'
uint32_t sent;
int begun;
tcp:::send /args[4]->tcp_sport == 4323 && args[4]->tcp_dport == 4321/ {
	this->marks = args[4]->tcp_flags & (TH_SYN | TH_FIN);
	this->bytes = args[2]->ip_plength - args[4]->tcp_offset;
	this->end = args[4]->tcp_seq + this->bytes + (this->marks != 0);
	this->kind = this->marks & TH_SYN ? "SYN" : this->marks & TH_FIN ? "FIN" : this->bytes > 0 ? "data" : "nothing";
	this->again = begun && this->kind != "nothing" && (int32_t)(this->end - sent) <= 0;
	@[this->kind, this->again, args[3]->tcps_retransmit] = count();
	sent = this->again || this->kind == "nothing" ? sent : this->end;
	begun = 1;
}
tcp:::send /args[4]->tcp_sport == 4321 && args[4]->tcp_dport == 4323/ { @server[args[3]->tcps_retransmit] = count(); }
tcp:::receive /args[4]->tcp_sport == 4323 && args[4]->tcp_dport == 4321/ { @server[args[3]->tcps_retransmit] = count(); }
tcp:::connect-request /args[4]->tcp_sport == 4323/ { printf("asked\n"); }
END {
	printa("%s, again %d, told %d\n", @);
	printa("the server's, told %d\n", @server);
}
D
for version in 4 6; do
	dtrace -qs /tmp/loss.d -c "net-events loss $version" | LC_ALL=C sort | sed '/^$/d'
done
