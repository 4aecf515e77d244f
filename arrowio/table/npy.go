package table

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// npy is a NumPy array: shape, and the raw elements in row-major order.
type npy struct {
	name  string
	kind  byte // f i u b M U S
	size  int  // bytes an element
	unit  string
	shape []int
	data  []byte

	start   int  // of the elements, in the file
	count   int  // elements, by the shape
	fortran bool // the elements lie in column-major order
}

// maxNPYHeader bounds the header, which NumPy keeps under 64 KiB but for structures of many fields.
const maxNPYHeader = 1 << 20

var (
	npyDescr = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z])(\d+)(?:\[(\w+)\])?'`)
	npyOrder = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape = regexp.MustCompile(`'shape':\s*\(([\d,\s]*)\)`)
)

// parseNPY reads the .npy format, versions 1 to 3: magic, version, header length, a Python literal, elements.
func parseNPY(name string, b []byte) (*npy, error) {
	a, err := readNPYHeader(name, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	a.data = b[a.start:]
	return a, a.finish()
}

// readNPYHeader reads all but the elements.
func readNPYHeader(name string, r io.Reader) (*npy, error) {
	b := make([]byte, 12)
	if _, err := io.ReadFull(r, b[:10]); err != nil || string(b[:6]) != "\x93NUMPY" {
		return nil, fmt.Errorf("array %s: not in the .npy format", name)
	}
	n, start := int(binary.LittleEndian.Uint16(b[8:])), 10
	if b[6] > 1 {
		if _, err := io.ReadFull(r, b[10:]); err != nil {
			return nil, fmt.Errorf("array %s: not in the .npy format", name)
		}
		n, start = int(binary.LittleEndian.Uint32(b[8:])), 12
	}
	if n > maxNPYHeader {
		return nil, fmt.Errorf("array %s: header of %d bytes, allowed are %d", name, n, maxNPYHeader)
	}
	header := make([]byte, n)
	if got, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("array %s: header of %d bytes, %d remain", name, n, got)
	}
	a := &npy{name: name, start: start + n}
	return a, a.parseHeader(string(header))
}

func (a *npy) parseHeader(header string) error {
	descr, order, shape := npyDescr.FindStringSubmatch(header), npyOrder.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	if descr == nil || order == nil || shape == nil {
		return fmt.Errorf("array %s: header %.80q, want a plain dtype, an order and a shape", a.name, header)
	}
	a.kind, a.unit = descr[2][0], descr[4]
	a.size, _ = strconv.Atoi(descr[3])
	if a.size <= 0 || a.size > 1<<20 {
		return fmt.Errorf("array %s: elements of %s bytes", a.name, descr[3])
	}
	if a.kind == 'U' {
		a.size *= 4
	}
	if descr[1] == ">" && a.size > 1 {
		return fmt.Errorf("array %s: big-endian dtype, save it as little endian", a.name)
	}
	a.count = 1
	for _, s := range strings.Split(shape[1], ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		d, err := strconv.Atoi(s)
		if err != nil || d < 0 || d > 0 && a.count > math.MaxInt32*64/d {
			return fmt.Errorf("array %s: shape (%s)", a.name, shape[1])
		}
		a.shape, a.count = append(a.shape, d), a.count*d
	}
	a.fortran = order[1] == "True" && len(a.shape) > 1
	if a.fortran && len(a.shape) != 2 {
		return fmt.Errorf("array %s: Fortran order in %d dimensions, save it in C order", a.name, len(a.shape))
	}
	return nil
}

// finish checks the elements, and puts them in row-major order.
func (a *npy) finish() error {
	if len(a.data)%a.size != 0 || len(a.data)/a.size != a.count {
		return fmt.Errorf("array %s: %d bytes for %d elements of %d bytes", a.name, len(a.data), a.count, a.size)
	}
	if a.fortran {
		a.transpose()
	}
	return nil
}

// transpose turns a two-dimensional array in column-major order into row-major order.
func (a *npy) transpose() {
	out, rows, cols := make([]byte, len(a.data)), a.shape[0], a.shape[1]
	for i := range rows {
		for j := range cols {
			copy(out[(i*cols+j)*a.size:], a.data[(j*rows+i)*a.size:(j*rows+i+1)*a.size])
		}
	}
	a.data = out
}

func (a *npy) len() int { return len(a.data) / a.size }

// rows is the length of the first axis.
func (a *npy) rows() int {
	if len(a.shape) == 0 {
		return 0
	}
	return a.shape[0]
}

func (a *npy) isFloat() bool { return a.kind == 'f' && (a.size == 2 || a.size == 4 || a.size == 8) }
func (a *npy) isInt() bool   { return a.kind == 'i' || a.kind == 'u' || a.kind == 'b' }
func (a *npy) isText() bool  { return a.kind == 'U' || a.kind == 'S' }

// dtype is the type as NumPy writes it.
func (a *npy) dtype() string {
	switch {
	case a.isText():
		return fmt.Sprintf("%c%d", a.kind, a.size)
	case a.kind == 'b':
		return "bool"
	}
	return fmt.Sprintf("%s%d", map[byte]string{'f': "float", 'i': "int", 'u': "uint", 'M': "datetime"}[a.kind], 8*a.size)
}

func (a *npy) String() string {
	dims := make([]string, len(a.shape))
	for i, d := range a.shape {
		dims[i] = strconv.Itoa(d)
	}
	return fmt.Sprintf("%s %s[%s]", a.name, a.dtype(), strings.Join(dims, ","))
}

// float is element i of a float array.
func (a *npy) float(i int) float64 {
	switch b := a.data[i*a.size:]; a.size {
	case 2:
		return float64(half.Value(binary.LittleEndian.Uint16(b)))
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	default:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}

// float32s are the elements as float32: the array's own memory where they are that.
func (a *npy) float32s() []float32 {
	if v, err := wire.Values[float32](a.name, a.data, a.len()); a.size == 4 && err == nil {
		return v
	}
	out := make([]float32, a.len())
	for i := range out {
		out[i] = float32(a.float(i))
	}
	return out
}

// float64s are the elements as float64: the array's own memory where they are that.
func (a *npy) float64s() []float64 {
	if v, err := wire.Values[float64](a.name, a.data, a.len()); a.size == 8 && err == nil {
		return v
	}
	out := make([]float64, a.len())
	for i := range out {
		out[i] = a.float(i)
	}
	return out
}

// int is element i of an integer, bool or datetime array; a uint64 above the int64 range becomes negative.
func (a *npy) int(i int) int64 {
	b := a.data[i*a.size : (i+1)*a.size]
	var u uint64
	for j, x := range b {
		u |= uint64(x) << (8 * j)
	}
	if shift := 64 - 8*len(b); a.kind == 'i' && shift > 0 {
		return int64(u<<shift) >> shift
	}
	return int64(u)
}

// text is element i of a text array, without its padding.
func (a *npy) text(i int) string {
	b := a.data[i*a.size : (i+1)*a.size]
	if a.kind == 'S' {
		return strings.TrimRight(string(b), "\x00")
	}
	var r []rune
	for ; len(b) >= 4; b = b[4:] {
		c := rune(binary.LittleEndian.Uint32(b))
		if c < 0 || utf16.IsSurrogate(c) {
			c = '\uFFFD'
		}
		r = append(r, c)
	}
	return strings.TrimRight(string(r), "\x00")
}
