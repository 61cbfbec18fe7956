// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Writes records of floating-point numbers, which float.d reads in this program's memory. Meanwhile
 * it computes, and its own registers must not change: it exits with 1 if a result differs from the
 * first.
 */
#include <fcntl.h>
#include <unistd.h>

struct sample {
	double d;
	float f;
	int n;
	long double l;
};

static double work(void)
{
	double sum = 0;

	for (int i = 1; i < 20000; i++)
		sum += 1.0 / i;
	return sum;
}

int main(void)
{
	int null = open("/dev/null", O_WRONLY), status = 0;
	double before = work();

	for (int n = 1; n <= 4; n++) {
		struct sample s = { n * 0.1, 1.5f - n * 0.25f, n, 1.0L / n };

		status |= write(null, &s, sizeof(s)) != sizeof(s);
		status |= work() != before;
	}
	return status;
}
