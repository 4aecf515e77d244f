package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// speedFile is what bench/train/speed.py measured.
type speedFile struct {
	Date    string `json:"date"`
	Machine string `json:"machine"`
	Rows    []struct {
		Title   string  `json:"title"`
		N       int     `json:"rows"`
		Dims    []int   `json:"dims"`
		Batch   int     `json:"batch"`
		Keep    float64 `json:"keep"`
		Threads int     `json:"threads"`
		Seconds map[string]struct {
			Min    float64 `json:"min"`
			Median float64 `json:"median"`
		} `json:"seconds"`
	} `json:"rows"`
}

// sides are the columns of the table of speed.
var sides = []struct{ name, title string }{
	{"gorgonia openblas", "gorgonia, OpenBLAS"}, {"go openblas", "go, OpenBLAS"}, {"gorgonia gonum",
		"gorgonia, gonum"}, {"go gonum", "go, gonum"},
	{"eager", "PyTorch"}, {"fused", "PyTorch, fused SGD"},
}

// readSpeed renders what was measured; nothing where nothing was.
func readSpeed(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var f speedFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s. Milliseconds an epoch, the least of all; median in brackets:\n\n", f.Date, f.Machine)
	titles := []string{"head", "rows", "batch", "threads"}
	for _, s := range sides {
		titles = append(titles, s.title)
	}
	header(&b, append(titles, "PyTorch's best to gorgonia, go")...)
	for _, row := range f.Rows {
		dims := strings.ReplaceAll(strings.Trim(fmt.Sprint(row.Dims), "[]"), " ", "–")
		cells := []string{dims + ", " + row.Title, fmt.Sprint(row.N), fmt.Sprint(row.Batch), fmt.Sprint(row.Threads)}
		for _, s := range sides {
			v, ok := row.Seconds[s.name]
			if !ok {
				cells = append(cells, "–")
				continue
			}
			cells = append(cells, fmt.Sprintf("%.2f (%.2f)", 1e3*v.Min, 1e3*v.Median))
		}
		peer := min(row.Seconds["eager"].Min, row.Seconds["fused"].Min)
		ratio := fmt.Sprintf("%.2f, %.2f", peer/row.Seconds["gorgonia openblas"].Min,
			peer/row.Seconds["go openblas"].Min)
		b.WriteString("| " + strings.Join(append(cells, ratio), " | ") + " |\n")
	}
	b.WriteString("\n")
	return b.String(), nil
}
