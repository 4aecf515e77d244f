// Command data writes the files beside it: answers of the demo's network (examples/digits) on three days, and those of
// a binary classifier, as the tools of other people would write them. The same command makes the same bytes.
//
//	go run ./examples/data -o examples/data
package main

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/examples/digits"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/head"
)

const seed = 1

// day is one file of the network's answers.
type day struct {
	file     string
	rows     int
	shifted  bool
	features bool
	seed     uint64
}

var days = []day{
	{file: "monday.npz", rows: 1000, seed: 1},
	{file: "tuesday.npz", rows: 1000, seed: 2, shifted: true},
	{file: "wednesday.parquet", rows: 500, seed: 3, shifted: true},
	{file: "features.parquet", rows: 800, seed: 4, shifted: true, features: true},
}

func main() {
	out := flag.String("o", "examples/data", "`directory` of the files")
	flag.Parse()
	if err := write(*out); err != nil {
		log.Fatal(err)
	}
}

// write writes all files.
func write(dir string) error {
	set, err := digits.Load()
	if err != nil {
		return err
	}
	train, held := set.Split(seed)
	net := digits.Train(train, seed)
	start := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for i, d := range days {
		if err := table.Write(filepath.Join(dir, d.file), d.table(net, held, start.AddDate(0, 0, i))); err != nil {
			return err
		}
	}
	if err := writeHead(filepath.Join(dir, "head.safetensors"), net); err != nil {
		return err
	}
	return writeChurn(filepath.Join(dir, "churn.csv"))
}

// table is the day's rows, one every 20 seconds.
func (d day) table(net *digits.Network, set digits.Set, start time.Time) *table.Table {
	shiftAt := int64(-1)
	if d.shifted {
		shiftAt = 0
	}
	stream := digits.NewStream(net, set, digits.StreamOptions{Seed: d.seed, ShiftAt: shiftAt})
	t := &table.Table{N: d.rows, K: digits.Classes, Model: "digits", Version: "1", Slices: map[string][]string{}}
	var row digits.Row
	for i := range d.rows {
		stream.Next(&row)
		t.IDs = append(t.IDs, start.Weekday().String()+"-"+strconv.Itoa(i))
		t.TS = append(t.TS, start.Add(time.Duration(i)*20*time.Second).UnixNano())
		t.Scores32 = append(t.Scores32, row.Logits[:]...)
		t.Label = append(t.Label, row.Label)
		t.Slices["device"] = append(t.Slices["device"], row.Device)
		if d.features {
			t.D = digits.Hidden
			t.Features = append(t.Features, row.Features[:]...)
		}
	}
	return t
}

// writeHead writes the network's last layer.
func writeHead(path string, net *digits.Network) error {
	h, err := head.Linear(net.Head())
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := artefact.WriteSafetensors(&out, h, nil); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// writeChurn writes what a data scientist would: labels y_true, probabilities y_prob that are too sure of themselves.
func writeChurn(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	w := csv.NewWriter(f)
	if err := w.Write([]string{"customer", "y_true", "y_prob", "plan"}); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, seed))
	for i := range 1000 {
		z := rng.NormFloat64() * 1.5
		y := 0
		if rng.Float64() < 1/(1+math.Exp(-z)) {
			y = 1
		}
		plan := []string{"basic", "premium"}[rng.IntN(2)]
		p := 1 / (1 + math.Exp(-2*z)) // twice too sure
		row := []string{fmt.Sprintf("c%04d", i), strconv.Itoa(y), strconv.FormatFloat(p, 'f', 6, 64), plan}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
