#!/bin/sh
# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# All CPUs record into two speculations; one CPU commits one of them and discards the other. The
# records of every CPU are printed or not, respectively, and both speculations are free afterwards.
# @limit: 60

dtrace -x nspec=2 -x cleanrate=50hz -qn '
BEGIN { kept = speculation(); lost = speculation(); ended = 0; }
profile-101 /!ended/ { speculate(kept); printf("kept on %d\n", cpu); }
profile-101 /!ended/ { speculate(lost); printf("lost on %d\n", cpu); }
tick-2s /!ended/ { ended = 1; commit(kept); }
tick-2s /ended == 1/ { ended = 2; discard(lost); }
tick-1s /ended == 2/ { ended = 3; }
tick-2s /ended == 3/ { printf("free: %d %d\n", speculation(), speculation()); exit(0); }
' >/tmp/speculation.out || exit 1
grep -c lost /tmp/speculation.out
test "$(grep kept /tmp/speculation.out | sort -u | wc -l)" -eq "$(nproc)" && echo every CPU
grep free /tmp/speculation.out

# Records that were committed but not yet cleaned when the tracing ended are printed too.
dtrace -x cleanrate=1hz -qn '
BEGIN { spec = speculation(); unavailable = speculation(); }
profile-101 /!unavailable/ { speculate(spec); printf("kept on %d\n", cpu); }
tick-2s { unavailable = 1; commit(spec); }
tick-2s { exit(0); }
' 2>&1 >/tmp/speculation.out
test "$(grep kept /tmp/speculation.out | sort -u | wc -l)" -eq "$(nproc)" && echo every CPU
rm /tmp/speculation.out
