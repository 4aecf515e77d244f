package main

import (
	"fmt"
	"slices"
)

// cell is one kind of stream.
type cell struct {
	K      int
	Inline bool // labels come with the predictions
	Keys   int  // values of a slice column; 1: there is none
	Batch  int  // rows a message
	JSON   bool // in place of Arrow, anywhere, as servers send what they answer
	Sent   int  // messages that the producer sends in a batch of JSON; 0: up to a thousand
	Rows   int64
}

// Bounds of a stream: enough rows for seconds of processor time, and messages that a broker takes.
const (
	streamBytes  = 200 << 20
	mostRows     = 2_000_000
	mostMessages = 150_000
	messageBytes = 8 << 20
	idBytes      = 40 // about what a row takes beside its scores
)

func newCell(k int, inline bool, keys, batch int) cell {
	batch = min(batch, messageBytes/(4*k))
	rows := min(streamBytes/(4*int64(k)+idBytes), mostRows, mostMessages*int64(batch))
	return cell{K: k, Inline: inline, Keys: keys, Batch: batch, Rows: rows}
}

func (c cell) name() string {
	labels := "joined"
	if c.Inline {
		labels = "inline"
	}
	if c.JSON {
		labels += "-json"
	}
	if c.Sent > 0 {
		labels += fmt.Sprintf("%d", c.Sent)
	}
	return fmt.Sprintf("K%d-%s-keys%d-batch%d-rows%d", c.K, labels, c.Keys, c.Batch, c.Rows)
}

// tiny is the stream whose time is that of starting.
func (c cell) tiny() cell {
	c.Rows = int64(min(c.Batch, 100))
	return c
}

var classes = []int{2, 10, 100, 1000, 32_000}

// shortCells are for the developer's own loop.
func shortCells() []cell {
	var out []cell
	for _, k := range []int{10, 100, 1000} {
		out = append(out, newCell(k, false, 1, 1000), newCell(k, true, 1, 1000))
	}
	return out
}

// starCells are those, other numbers of classes, and other numbers of keys and sizes of messages: the first are asked
// for most.
func starCells() []cell {
	out := shortCells()
	for _, k := range []int{2, 32_000} {
		out = append(out, newCell(k, false, 1, 1000), newCell(k, true, 1, 1000))
	}
	for _, k := range []int{10, 100, 1000} {
		for _, keys := range []int{100, 10_000} {
			out = append(out, newCell(k, false, keys, 1000))
		}
		for _, batch := range []int{1, 100} {
			out = append(out, newCell(k, false, 1, batch))
		}
	}
	return out
}

// jsonCells are few rows a record.
func jsonCells() []cell {
	const rows = 400_000
	var out []cell
	for _, k := range []int{2, 10, 100} {
		out = append(out, cell{K: k, Keys: 1, Batch: 1, JSON: true, Rows: min(rows, streamBytes/(10*int64(k)))})
	}
	for _, batch := range []int{1, 4} {
		out = append(out, cell{K: 10, Keys: 1, Batch: batch, JSON: true, Sent: 10, Rows: rows})
	}
	return out
}

// fullCells are every combination.
func fullCells() []cell {
	var out []cell
	for _, k := range classes {
		for _, inline := range []bool{false, true} {
			for _, keys := range []int{1, 100, 10_000} {
				for _, batch := range []int{1, 100, 1000} {
					if c := newCell(k, inline, keys, batch); !slices.Contains(out, c) {
						out = append(out, c)
					}
				}
			}
		}
	}
	return out
}
