/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

struct pair {
	int first;
	int second;
};

BEGIN
{
	this->user = (userland struct pair *)arg0;
	this->kernel = (struct pair *)arg1;
	trace((arg2 ? *this->kernel : *this->user).second);
}
