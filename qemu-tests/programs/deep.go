// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

// Usage: deep N [ROUTINES]
//
// Starts goroutines, three by default, that recurse N levels deep, on stacks that move while they
// grow.
package main

import (
	"fmt"
	"os"
	"strconv"
)

//go:noinline
func down(n int) int {
	if n == 0 {
		return 0
	}
	return down(n-1) + n%7
}

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	routines := 3
	if len(os.Args) > 2 {
		if routines, err = strconv.Atoi(os.Args[2]); err != nil {
			panic(err)
		}
	}
	sums := make(chan int)
	for i := 0; i < routines; i++ {
		go func() { sums <- down(n) }()
	}
	sum := 0
	for i := 0; i < routines; i++ {
		sum += <-sums
	}
	fmt.Println(sum, down(n/10))
}
