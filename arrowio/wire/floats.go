package wire

import "github.com/plumbline/plumbline/arrowio/half"

// Take returns a slice of n entries from *mem, growing it where needed. The entries are not cleared.
func Take[T any](mem *[]T, n int) []T {
	if cap(*mem) < n {
		*mem = make([]T, n)
	}
	return (*mem)[:n]
}

// Floats are the first n values of a float column as float32: a view of the message where the column is
// float32, else converted into *mem. Values under a null are whatever the producer left there.
func Floats(c *Column, n int, mem *[]float32) ([]float32, error) {
	switch c.Field.Bits {
	case 32:
		return Values[float32](c.Field.Name, c.Data, n)
	case 64:
		v, err := Values[float64](c.Field.Name, c.Data, n)
		if err != nil {
			return nil, err
		}
		out := Take(mem, n)
		for i, x := range v {
			out[i] = float32(x)
		}
		return out, nil
	default:
		v, err := Values[uint16](c.Field.Name, c.Data, n)
		if err != nil {
			return nil, err
		}
		out := Take(mem, n)
		for i, x := range v {
			out[i] = half.Value(x)
		}
		return out, nil
	}
}

// SparseValues bounds the values of the slabs of one message that are larger than what they come from: those with
// empty null rows. Without it, one row of many classes and many nulls, batch after batch, would cost gigabytes.
func SparseValues(messageBytes int) int64 { return 1<<20 + 4*int64(messageBytes) }

// ListSize is the common length of the rows that are not null; dense is true where null rows have it too.
func ListSize(c *Column, off []int64, most int) (k int, dense bool, err error) {
	size, dense := int64(-1), true
	for i := range c.N {
		n := off[i+1] - off[i]
		switch {
		case c.IsNull(i):
		case size < 0:
			size = n
		case n != size:
			return 0, false, Errorf(Shape, "column %q: row %d has %d values, the rows before %d", c.Field.Name, i, n,
				size)
		}
	}
	if size > int64(most) {
		return 0, false, Errorf(TooLarge, "column %q: %d values a row, at most %d", c.Field.Name, size, most)
	}
	if size < 0 {
		return 0, false, nil
	}
	for i := range c.N {
		dense = dense && off[i+1]-off[i] == size
	}
	return int(size), dense, nil
}

// ChildNulls calls null for every row that is null or has a null element.
func ChildNulls(c *Column, n, k int, null func(row int)) error {
	if c.Valid != nil {
		for i := range n {
			if c.IsNull(i) {
				null(i)
			}
		}
	}
	if c.Child == nil || c.Child.Valid == nil {
		return nil
	}
	if c.Field.Type != FixedSizeList {
		off, _, err := Offsets(c, c.Child.N, nil)
		if err != nil {
			return err
		}
		for i := range n {
			for j := off[i]; j < off[i+1]; j++ {
				if c.Child.IsNull(int(j)) {
					null(i)
					break
				}
			}
		}
		return nil
	}
	for i := range n {
		for j := range k {
			if c.Child.IsNull(i*k + j) {
				null(i)
				break
			}
		}
	}
	return nil
}
