// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

// Calls getppid() before it throws an exception, in a destructor during the unwinding, and in the
// handler.

#include <stdexcept>
#include <unistd.h>

#define KEPT __attribute__((noinline))

namespace
{
volatile long sink;

KEPT void last()
{
	sink = sink + getppid();
}

struct Guard {
	KEPT ~Guard()
	{
		last();
		sink = sink + 1;
	}
};

template <typename T> KEPT void thrower(T what)
{
	last();
	if (sink)
		throw std::runtime_error(what);
	sink = sink + 1;
}

KEPT void between()
{
	Guard guard;

	thrower("here");
	sink = sink + 1;
}

KEPT void catches()
{
	try {
		between();
	} catch (const std::exception &) {
		last();
	}
	sink = sink + 1;
}
}

int main()
{
	catches();
	return sink == 42;
}
