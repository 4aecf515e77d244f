package data

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func sample(n int) *Set {
	s := &Set{D: 2, K: 3}
	for i := range n {
		s.X = append(s.X, float32(i), float32(-i))
		y := int32(0)
		if i%5 == 0 {
			y = int32(1 + i/5%2)
		}
		s.Y = append(s.Y, y)
		s.Time = append(s.Time, int64(i*37%101))
	}
	return s
}

func TestSplitIsByTime(t *testing.T) {
	s := sample(100)
	train, valid, used, err := s.Split(SplitConfig{Validation: 0.25, MaxRows: 60})
	if err != nil {
		t.Fatal(err)
	}
	if len(train) != 60 || len(valid) != 25 || used.TooOld != 15 || used.Rows != 100 {
		t.Errorf("%d rows train, %d validate, %+v", len(train), len(valid), used)
	}
	last := int64(math.MinInt64)
	for _, r := range slices.Concat(train, valid) {
		if s.Time[r] < last {
			t.Fatalf("row %d of time %d comes after time %d", r, s.Time[r], last)
		}
		last = s.Time[r]
	}
	var sum int
	for _, n := range slices.Concat(used.TrainBy, used.ValidBy) {
		sum += n
	}
	if sum != 85 {
		t.Errorf("classes count %d rows, want 85", sum)
	}
}

func TestBalance(t *testing.T) {
	s := sample(200)
	train, _, used, err := s.Split(SplitConfig{Balance: 1.5, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	if rarest := slices.Min(used.TrainBy); slices.Max(used.TrainBy) != int(1.5*float64(rarest)) {
		t.Errorf("classes have %v rows, want at most 1.5 times the rarest", used.TrainBy)
	}
	if used.Train+used.Balanced != 160 || len(train) != used.Train {
		t.Errorf("%+v", used)
	}
	if !slices.IsSortedFunc(train, func(a, b int32) int { return int(s.Time[a] - s.Time[b]) }) {
		t.Error("balanced rows are not in order of time")
	}
	same, _, _, _ := s.Split(SplitConfig{Balance: 1.5, Seed: 4})
	other, _, _, _ := s.Split(SplitConfig{Balance: 1.5, Seed: 5})
	if !slices.Equal(train, same) || slices.Equal(train, other) {
		t.Error("the rows kept are not a function of the seed")
	}
}

func TestSplitRefuses(t *testing.T) {
	for want, c := range map[string]SplitConfig{
		"validation 1":   {Validation: 1},
		"validation NaN": {Validation: math.NaN()},
		"max_rows -1":    {MaxRows: -1},
		"balance 0.5":    {Balance: 0.5},
		"10 train and 0 validate, allowed is at least 1 each": {Validation: 0.01},
	} {
		if _, _, _, err := sample(10).Split(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", c, err, want)
		}
	}
}

func TestCheckNamesTheRow(t *testing.T) {
	for want, edit := range map[string]func(*Set){
		"row 3: label 3":            func(s *Set) { s.Y[3] = 3 },
		"row 2, feature 1: NaN":     func(s *Set) { s.X[5] = float32(math.NaN()) },
		"19 float32 and 0 float16":  func(s *Set) { s.X = s.X[:19] },
		"9 times and 0 places":      func(s *Set) { s.Time = s.Time[:9] },
		"20 float32 and 20 float16": func(s *Set) { s.Half = make([]uint16, 20) },
		"row 1, feature 0: +Inf":    func(s *Set) { s.X, s.Half = nil, make([]uint16, 20); s.Half[2] = 0x7c00 },
		"place 10, allowed 0..9":    func(s *Set) { s.Index = Rows(10); s.Index[4] = 10 },
		"3 places for 10 rows":      func(s *Set) { s.Index = Rows(3) },
		"2 features and 1 classes":  func(s *Set) { s.K = 1 },
	} {
		s := sample(10)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		edit(s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestViewsAndOrders(t *testing.T) {
	s := sample(20)
	sub := s.Select([]int32{7, 0, 7})
	want := fmt.Sprint([]float32{7, -7, 0, 0, 7, -7}, []int32{0, 1, 0}, []int64{57, 0, 57})
	if x := sub.Chunk(nil, 0, 3); fmt.Sprint(x, sub.Y, sub.Time) != want {
		t.Errorf("%v %v %v", x, sub.Y, sub.Time)
	}
	again, x := sub.Select([]int32{1, 2}), make([]float32, 4)
	if again.Gather(x, []int32{1, 0}); fmt.Sprint(x) != "[7 -7 0 0]" || again.Check() != nil {
		t.Errorf("a view of a view: %v, %v", x, again.Check())
	}
	half := &Set{D: 2, K: 3, Half: []uint16{0x3c00, 0xc000, 0, 0x3800}, Y: []int32{0, 1}} // 1, −2; 0, ½
	if x := half.Chunk(nil, 0, 2); fmt.Sprint(x) != "[1 -2 0 0.5]" || half.Check() != nil {
		t.Errorf("float16: %v, %v", x, half.Check())
	}
	if half.Gather(x[:2], []int32{1}); x[1] != 0.5 {
		t.Errorf("float16: row 1 is %v", x[:2])
	}
	a, b := Shuffled(Rows(50), 1, 2), Shuffled(Rows(50), 1, 2)
	if !slices.Equal(a, b) || slices.Equal(a, Shuffled(Rows(50), 1, 3)) || slices.Equal(a, Shuffled(Rows(50), 2, 2)) {
		t.Error("orders are not a function of seed and epoch")
	}
	if slices.Sort(a); !slices.Equal(a, Rows(50)) {
		t.Errorf("not a permutation: %v", a)
	}
	if Batches(10, 3) != 4 || Batches(9, 3) != 3 {
		t.Error("mini-batches are counted wrongly")
	}
}
