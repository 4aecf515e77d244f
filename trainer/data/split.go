package data

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/trainer/philox"
)

// SplitConfig says which rows train and which validate.
type SplitConfig struct {
	// Validation is the share of the rows, the newest, that validates; 0 means 0.2.
	Validation float64 `json:"validation"`
	// MaxRows bounds the training rows, the newest before the validation rows; 0 means all.
	MaxRows int `json:"max_rows"`
	// Balance keeps of every class at most Balance times as many training rows as the rarest class present has, drawn
	// by seed; 0 keeps all.
	Balance float64 `json:"balance"`
	// Seed draws the rows that balancing keeps.
	Seed uint64 `json:"seed"`
}

// defaultValidation is SplitConfig.Validation where that is 0.
const defaultValidation = 0.2

// Validate returns an error that names the key, its value and what is allowed.
func (c SplitConfig) Validate() error {
	switch {
	case !(c.Validation >= 0 && c.Validation < 1):
		return fmt.Errorf("validation %v, allowed 0 up to and without 1", c.Validation)
	case c.MaxRows < 0:
		return fmt.Errorf("max_rows %d, allowed 0 (all) or more", c.MaxRows)
	case !(c.Balance == 0 || c.Balance >= 1 && c.Balance <= 1e9):
		return fmt.Errorf("balance %v, allowed 0 (off) and 1..1e9", c.Balance)
	}
	return nil
}

// Used says what a split used.
type Used struct {
	Rows       int   `json:"rows"`
	Train      int   `json:"train"`
	Validation int   `json:"validation"`
	TooOld     int   `json:"too_old"`  // beyond max_rows
	Balanced   int   `json:"balanced"` // left out to balance classes
	TrainBy    []int `json:"train_by_class"`
	ValidBy    []int `json:"validation_by_class"`
}

// Present are the classes that have training rows, ascending.
func (u Used) Present() (classes []int) {
	for k, n := range u.TrainBy {
		if n > 0 {
			classes = append(classes, k)
		}
	}
	return classes
}

// Split divides by time: the newest rows validate, those before train. Both are ascending in time.
func (s *Set) Split(c SplitConfig) (train, valid []int32, used Used, err error) {
	if err := c.Validate(); err != nil {
		return nil, nil, used, err
	}
	share := c.Validation
	if share == 0 {
		share = defaultValidation
	}
	rows := s.ByTime()
	held := int(share*float64(len(rows)) + 0.5)
	rest := len(rows) - held
	if held < 1 || rest < 1 {
		return nil, nil, used, fmt.Errorf("split of %d rows with validation %v: %d train and %d validate, "+
			"allowed is at least 1 each", len(rows), share, rest, held)
	}
	train, valid = rows[:rest], rows[rest:]
	used.Rows = len(rows)
	if c.MaxRows > 0 && len(train) > c.MaxRows {
		used.TooOld = len(train) - c.MaxRows
		train = train[used.TooOld:]
	}
	if c.Balance > 0 {
		kept := s.balanced(train, c)
		used.Balanced = len(train) - len(kept)
		train = kept
	}
	used.Train, used.Validation = len(train), len(valid)
	used.TrainBy, used.ValidBy = s.countBy(train), s.countBy(valid)
	return train, valid, used, nil
}

func (s *Set) countBy(rows []int32) []int {
	by := make([]int, s.K)
	for _, r := range rows {
		by[s.Y[r]]++
	}
	return by
}

// balanced keeps the rows of each class that come first in a shuffled order, in their order of time.
func (s *Set) balanced(rows []int32, c SplitConfig) []int32 {
	rarest := len(rows)
	for _, n := range s.countBy(rows) {
		if n > 0 {
			rarest = min(rarest, n)
		}
	}
	most := int(c.Balance * float64(rarest))
	place := Rows(len(rows))
	src := philox.Source{Stream: philox.Stream{Seed: c.Seed, Purpose: philox.Split}}
	src.Shuffle(place)
	var kept []int32
	have := make([]int, s.K)
	for _, p := range place {
		if y := s.Y[rows[p]]; have[y] < most {
			have[y]++
			kept = append(kept, p)
		}
	}
	slices.Sort(kept)
	for i, p := range kept {
		kept[i] = rows[p]
	}
	return kept
}
