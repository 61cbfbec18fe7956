// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

/*
 * @musl-gcc:
 * With an argument it opens that library and closes it.
 */
#include "pid-kind.h"

int main(int argc, char **argv)
{
	work();
	if (argc > 1) {
		void *library = dlopen(argv[1], RTLD_NOW);

		if (!library)
			printf("%s\n", dlerror());
		else
			dlclose(library);
	}
	return 0;
}
