// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

// A program that calls itself a million times deep, on a stack that moves while it grows.
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
	sums := make(chan int)
	for i := 0; i < 3; i++ {
		go func() { sums <- down(n) }()
	}
	fmt.Println(<-sums+<-sums+<-sums, down(n/10))
}
