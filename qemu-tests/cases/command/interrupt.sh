# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# SIGINT and SIGTERM end tracing: END fires, aggregations are printed.
set -m # jobs in the background take SIGINT
for signal in INT TERM; do
	dtrace -qn 'BEGIN { seen = 0; } tick-10ms /!seen/ { seen = 1; @ = max(1); printf("seen\n"); } END { printf("end\n"); }' > /tmp/out &
	await seen /tmp/out
	kill -$signal $!
	wait $!
	echo "status $?"
	cat /tmp/out
	rm /tmp/out
done
