package feed_test

import (
	"fmt"
	"log"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
)

// A table of three rows, one a second, whose labels come two seconds later.
func ExampleNew() {
	rows := &feed.Rows{Model: "m", N: 3, K: 2, Scores: []float32{1, 0, 0, 2, 3, 0}, Label: []int32{0, 1, 0}}
	src, err := rows.Open(feed.Order{})
	if err != nil {
		log.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{
		EventRate: 1, DelayMin: 2 * time.Second, DelayMax: 2 * time.Second, FlushEvery: 10 * time.Second, End: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	for {
		m, err := f.Next()
		if err != nil {
			break // io.EOF
		}
		fmt.Println(m.Stream, m.Partition, m.Rows, time.Duration(m.Time), len(m.Headers))
	}
	// Output:
	// logits 0 3 2s 0
	// labels 0 3 4s 0
	// logits 0 0 4s 1
	// labels 0 0 4s 1
}
