package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/internal/setting"
)

// Problem is one error in a configuration, with its position.
type Problem struct {
	File         string // "" if the configuration is not from a file
	Line, Column int    // of the key, from 1; 0 if unknown
	setting.Problem
}

// Error returns FILE:LINE:COLUMN: PATH: VALUE: MESSAGE without the parts that are unknown.
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	return b.String() + p.Problem.Error()
}

// Problems holds all errors in a configuration. Parse, Load and Validate return it as an error; errors.As finds it.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// err returns ps ordered by position, or nil if it is empty.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return ps
}

// Validate checks every range and every condition between keys. The error is Problems and contains all of them. Parse
// adds lines and columns.
func (c Config) Validate() error {
	var ps Problems
	for _, p := range setting.Check(c) {
		ps = append(ps, Problem{Problem: p})
	}
	return ps.err()
}
