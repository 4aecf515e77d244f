package digits_test

import (
	"fmt"
	"log"

	"github.com/plumbline/plumbline/examples/digits"
)

func ExampleNewStream() {
	set, err := digits.Load()
	if err != nil {
		log.Fatal(err)
	}
	train, held := set.Split(1)
	stream := digits.NewStream(digits.Train(train, 1), held, digits.StreamOptions{Seed: 1, ShiftAt: 2})
	var row digits.Row
	for range 3 {
		stream.Next(&row)
		fmt.Println(row.ID, len(row.Logits), len(row.Features), row.Shifted)
	}
	// Output:
	// digit-0 10 32 false
	// digit-1 10 32 false
	// digit-2 10 32 true
}
