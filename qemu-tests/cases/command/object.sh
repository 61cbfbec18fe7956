# SPDX-FileCopyrightText: The DTrace for Linux authors
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# -G puts a program into an object, which a linker accepts; errors for what the command cannot make,
# and for a path it cannot write.
cd "$(mktemp -d)" || exit 1
printf 'BEGIN\n{\n\texit(0);\n}\n' >app.d
dtrace -G -s app.d; echo "status $?"
ld -r -o linked.o app.o && readelf -sW linked.o | awk '$8 == "___SUNW_dof" { print $4, $5, $6 }'
objcopy -O binary -j .SUNW_dof --set-section-flags .SUNW_dof=alloc,load,contents app.o app.dof
head -c 4 app.dof | tail -c 3; echo
dtrace -G -n BEGIN -n END; ls d.out.*
dtrace -G -o none/x.o -n BEGIN; echo "status $?"
dtrace -G -s app.d app.o; echo "status $?"
