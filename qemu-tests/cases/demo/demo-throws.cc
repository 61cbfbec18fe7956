// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

// Throws ten exceptions: five numbers, which are thrown again once, and five errors.
#include <stdexcept>

struct Number {
	int n;
};

__attribute__((noinline)) void throws(int n)
{
	if (n % 2)
		throw Number{ n };
	throw std::runtime_error("even");
}

__attribute__((noinline)) void throws_again(int n)
{
	try {
		throws(n);
	} catch (const Number &) {
		throw;
	}
}

int main()
{
	int sum = 0;

	for (int n = 0; n < 10; n++) {
		try {
			throws_again(n);
		} catch (const Number &number) {
			sum += number.n;
		} catch (const std::exception &) {
			sum += 100;
		}
	}
	return sum != 525;
}
