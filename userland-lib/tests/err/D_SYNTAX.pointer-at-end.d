/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* A pattern has stars as well: what this is would be told by what follows. */
long*address
