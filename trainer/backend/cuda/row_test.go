package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/trainer/loss"
)

// rowCase is n rows of k logits in few steps, so that many are equal: below 0, around it, all the same, and one that is
// far above the others. A label is the first of the largest as often as not.
type rowCase struct {
	n, k   int
	z      []float32
	y      []int32
	top    []int
	second []int
}

func newRowCase(k int) rowCase {
	c := rowCase{n: 24, k: k}
	for i := range c.n {
		row := make([]float32, k)
		for j := range row {
			switch v := float32((i*31 + j*j*7 + j*13) % 11 % 4); i % 4 {
			case 0:
				row[j] = v - 9
			case 1:
				row[j] = v/4 - 1
			case 2:
				row[j] = -0.5
			default:
				row[j] = v - 20
			}
		}
		if i%4 == 3 {
			// The second is one that the same thread reads, of the larger k: before the first, or behind it.
			at := (i*17 + 5) % k
			second := (at + 256) % k
			if i%8 == 3 {
				second = (at + 256*(k-1)) % k // at − 256
			}
			row[second], row[at] = 2, 3
		}
		top, second := largestTwo(row)
		c.z, c.top, c.second = append(c.z, row...), append(c.top, top), append(c.second, second)
		c.y = append(c.y, int32([]int{top, second, (i * 37) % k}[i/4%3]))
	}
	return c
}

// largestTwo are, of equal ones, the first.
func largestTwo(row []float32) (first, second int) {
	for j, v := range row {
		if v > row[first] {
			first = j
		}
	}
	second = -1
	for j, v := range row {
		if j != first && (second < 0 || v > row[second]) {
			second = j
		}
	}
	return first, second
}

func (c rowCase) hit(i int) int32 {
	if c.top[i] == int(c.y[i]) {
		return 1
	}
	return 0
}

// rowKernels: every kernel that reads rows of logits, beside package loss and the definitions.
func rowKernels() error {
	var errs []error
	for _, k := range []int{2, 3, 31, 33, 65, 256, 257, 700} {
		c := newRowCase(k)
		for _, text := range []string{
			"ce", "dual_focal", "dual_focal{variant:released}", "dual_focal{variant:eq25_26}", "squared", "entropy",
		} {
			if err := c.losses(text); err != nil {
				errs = append(errs, fmt.Errorf("%d classes, %s: %w", k, text, err))
			}
		}
		if err := errors.Join(c.measures(), c.scores()); err != nil {
			errs = append(errs, fmt.Errorf("%d classes: %w", k, err))
		}
	}
	return errors.Join(errs...)
}

// rowOff is what a number made of float32 exponentials may be off, relatively where it is above 1.
const rowOff = 1e-6

func (c rowCase) losses(text string) error {
	plan, err := compile(text)
	if err != nil {
		return err
	}
	wide, want := make([]float64, len(c.z)), make([]float64, len(c.z))
	for i, v := range c.z {
		wide[i] = float64(v)
	}
	value, err := plan.host.Eval(wide, loss.Batch{N: c.n, K: c.k, Y: c.y}, want)
	if err != nil {
		return err
	}
	order := make([]int32, c.n) // the rows come in the opposite order, as the second mini-batch of an epoch
	for i := range order {
		order[i] = int32(c.n - 1 - i)
	}
	var values []float64
	var grad []float32
	var right, seen []int32
	err = inLab(func(l *lab) error {
		epoch := upload(l, []epochParams{{Step: 1, Batch: int32(c.n)}})
		hits, count := upload(l, make([]int32, c.n)), upload(l, make([]int32, c.n))
		to, out := l.room(8*c.n), l.room(4*len(c.z))
		l.run(rowLosses, eachRow(c.n, c.k), ptr(epoch), ptr(upload(l, []lossPlan{plan.plan})), num(c.n), num(c.k),
			ptr(upload(l, c.z)), ptr(upload(l, c.y)), ptr(0), ptr(0), num(0), num(0),
			ptr(upload(l, append(make([]int32, c.n), order...))), ptr(hits), ptr(count), ptr(to), ptr(out))
		values, grad = download[float64](l, to, c.n), download[float32](l, out, len(c.z))
		right, seen = download[int32](l, hits, c.n), download[int32](l, count, c.n)
		return nil
	})
	if err != nil {
		return err
	}
	var sum float64
	for i, v := range values {
		sum += v / float64(c.n)
		if r := c.n - 1 - i; right[r] != c.hit(i) || seen[r] != 1 {
			return fmt.Errorf("row %d: right %d of %d times, want %d of 1", i, right[r], seen[r], c.hit(i))
		}
	}
	if !(math.Abs(sum-value) <= rowOff*max(1, math.Abs(value))) {
		return fmt.Errorf("loss %v, want %v", sum, value)
	}
	for i, w := range want {
		if d := math.Abs(float64(grad[i])-w) * float64(c.n); !(d <= rowOff*max(1, math.Abs(w)*float64(c.n))) {
			return fmt.Errorf("row %d, class %d: gradient %g, want %g", i/c.k, i%c.k, grad[i], w)
		}
	}
	return nil
}

// measures: hits of the rows of an epoch's second mini-batch, and NLL, hit and confidence of rows 2 on of a set.
func (c rowCase) measures() error {
	var right, seen []int32
	var out []float64
	const from = 2
	err := inLab(func(l *lab) error {
		epoch, z := upload(l, []epochParams{{Step: 1, Batch: 3}}), upload(l, c.z)
		rows := make([]int32, 3+c.n)
		for i := range c.n {
			rows[3+i] = int32(i)
		}
		hits, count := upload(l, make([]int32, c.n)), upload(l, make([]int32, c.n))
		l.run(rowHits, eachRow(c.n, c.k), ptr(epoch), num(c.k), ptr(z), ptr(upload(l, c.y)), ptr(upload(l, rows)),
			ptr(hits), ptr(count))
		right, seen = download[int32](l, hits, c.n), download[int32](l, count, c.n)
		to := l.room(8 * 3 * c.n)
		all := append([]int32{-1, -1}, c.y...)
		l.run(rowMeasures, eachRow(c.n, c.k), ptr(epoch), num(c.k), ptr(z), ptr(upload(l, all)), num(from), ptr(to))
		out = download[float64](l, to, 3*c.n)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range c.n {
		if right[i] != c.hit(i) || seen[i] != 1 {
			return fmt.Errorf("row_hits: row %d: right %d of %d times, want %d of 1", i, right[i], seen[i], c.hit(i))
		}
		p := c.probabilities(i)
		want := [3]float64{-math.Log(p[c.y[i]]), float64(c.hit(i)), p[c.top[i]]}
		for j, w := range want {
			if got := out[3*i+j]; !(math.Abs(got-w) <= rowOff*max(1, w)) {
				return fmt.Errorf("row_measures: row %d: %v, want %v", i, out[3*i:3*i+3], want)
			}
		}
	}
	return nil
}

// scores are within rowOff, and in [0, 1].
func (c rowCase) scores() error {
	for name, csf := range csfs {
		var got []float64
		err := inLab(func(l *lab) error {
			to := l.room(8 * c.n)
			plan := upload(l, []lossPlan{{CSF: csf}})
			l.run(auScores, eachRow(c.n, c.k), ptr(upload(l, make([]epochParams, 1))), ptr(plan), num(c.k),
				ptr(upload(l, c.z)), ptr(to))
			got = download[float64](l, to, c.n)
			return nil
		})
		if err != nil {
			return err
		}
		for i, g := range got {
			p := c.probabilities(i)
			want := p[c.top[i]]
			switch name {
			case "margin":
				want -= p[c.second[i]]
			case "negent":
				want = 1
				for _, v := range p {
					want += v * math.Log(v) / math.Log(float64(c.k))
				}
			}
			if !(math.Abs(g-want) <= rowOff) || g < 0 || g > 1 {
				return fmt.Errorf("row %d: %s %.17g, want %.17g", i, name, g, want)
			}
		}
	}
	return nil
}

func (c rowCase) probabilities(i int) []float64 {
	row, p := c.z[i*c.k:(i+1)*c.k], make([]float64, c.k)
	var sum float64
	for j, v := range row {
		p[j] = math.Exp(float64(v - row[c.top[i]]))
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return p
}
