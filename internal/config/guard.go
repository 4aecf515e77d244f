package config

import (
	"bytes"
	"fmt"
)

// Bounds of a YAML file. What the parser takes grows with the square of the depth, and it calls itself for each level;
// real files have a few thousand bytes and five levels.
const (
	maxFileBytes = 256 << 10
	maxDepth     = 64
	maxEntries   = 20_000  // lines and commas: the parser's time grows with the square of a mapping's entries
	maxValues    = 100_000 // that aliases may make of a file
	maxProblems  = 1000    // that are reported
)

// WithoutMark leaves out the byte order mark that editors on Windows put before the text. The parser would make it part
// of the first key.
func WithoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// CheckYAML refuses what would take the parser too much memory or time, before it is parsed.
func CheckYAML(data []byte) error {
	if len(data) > maxFileBytes {
		return fmt.Errorf("%d bytes: at most %d are read", len(data), maxFileBytes)
	}
	if n := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte(",")); n > maxEntries {
		return fmt.Errorf("%d lines and commas: at most %d are read", n, maxEntries)
	}
	line, column, leading, open := 1, 0, true, 0
	levels := 0 // that the beginning of this line can open: indentation, dashes and question marks
	for _, c := range data {
		column++
		switch c {
		case '\n':
			line, column, leading, levels = line+1, 0, true, 0
			continue
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		}
		if leading = leading && (c == ' ' || c == '-' || c == '?'); leading {
			levels++
		}
		if open > maxDepth || levels > 4*maxDepth {
			return fmt.Errorf("line %d, column %d: more than %d levels in each other", line, column, maxDepth)
		}
	}
	return nil
}
