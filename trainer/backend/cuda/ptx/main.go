package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ptx:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, wanted the name of a PTX file", len(args))
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	all, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	out := bufio.NewWriter(os.Stdout)
	if err := translate(out, all); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return out.Flush()
}
