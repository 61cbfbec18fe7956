/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

provider app {
	probe start__up();
	probe start__up(int);
};
