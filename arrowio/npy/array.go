package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Header is what an array's file says before the elements.
type Header struct {
	Name    string
	Kind    byte   // as NumPy: f i u b M U S
	Size    int    // bytes of an element
	Unit    string // of times
	Shape   []int
	Count   int  // elements, by the shape
	Fortran bool // the elements lie in column-major order; an Array's never do

	start int // of the elements, in the file
	swap  int // bytes of a number that is big endian in the file, 4 of a character of U; 0 = none is
}

// Array is a NumPy array: header, and the elements in row-major order.
type Array struct {
	Header
	data []byte
}

// maxHeader bounds the header, which NumPy keeps under 64 KiB but for structures of many fields.
const maxHeader = 1 << 20

var (
	descrText  = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z])(\d+)(?:\[(\w+)\])?'`)
	objectText = regexp.MustCompile(`'descr':\s*'\|O\d*'`)
	orderText  = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	shapeText  = regexp.MustCompile(`'shape':\s*\(([\d,\s]*)\)`)
)

// Parse reads the .npy format, versions 1 to 3: magic, version, header length, a Python literal, elements. The array
// may view b.
func Parse(name string, b []byte) (*Array, error) {
	h, err := readHeader(name, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	a := &Array{*h, b[h.start:]}
	if h.swap > 0 {
		a.data = bytes.Clone(a.data)
		h.toLittle(a.data)
	}
	return a, a.finish()
}

// OpenArray reads a .npy file; the array's name is the path.
func OpenArray(path string) (*Array, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, b)
}

// readHeader reads all but the elements.
func readHeader(name string, r io.Reader) (*Header, error) {
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
	if n > maxHeader {
		return nil, fmt.Errorf("array %s: header of %d bytes, allowed are %d", name, n, maxHeader)
	}
	header := make([]byte, n)
	if got, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("array %s: header of %d bytes, %d remain", name, n, got)
	}
	h := &Header{Name: name, start: start + n}
	return h, h.parse(string(header))
}

func (h *Header) parse(header string) error {
	descr, order, shape := descrText.FindStringSubmatch(header), orderText.FindStringSubmatch(
		header), shapeText.FindStringSubmatch(header)
	if objectText.MatchString(header) {
		return fmt.Errorf("array %s holds Python objects, a program that is not run: save it with .astype(str) or as "+
			"numbers", h.Name)
	}
	if descr == nil || order == nil || shape == nil {
		return fmt.Errorf("array %s: header %.80q, want a plain dtype, an order and a shape", h.Name, header)
	}
	h.Kind, h.Unit = descr[2][0], descr[4]
	h.Size, _ = strconv.Atoi(descr[3])
	if h.Size <= 0 || h.Size > 1<<20 {
		return fmt.Errorf("array %s: elements of %s bytes", h.Name, descr[3])
	}
	if h.Kind == 'U' {
		h.Size *= 4
	}
	if descr[1] == ">" {
		h.swap = map[byte]int{'U': 4, 'S': 0, 'c': h.Size / 2}[h.Kind]
		if strings.IndexByte("USc", h.Kind) < 0 && h.Size > 1 {
			h.swap = h.Size
		}
	}
	h.Count = 1
	for _, s := range strings.Split(shape[1], ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		d, err := strconv.Atoi(s)
		if err != nil || d < 0 || d > 0 && h.Count > math.MaxInt32*64/d {
			return fmt.Errorf("array %s: shape (%s)", h.Name, shape[1])
		}
		h.Shape, h.Count = append(h.Shape, d), h.Count*d
	}
	h.Fortran = order[1] == "True" && len(h.Shape) > 1
	if h.Fortran && len(h.Shape) != 2 {
		return fmt.Errorf("array %s: Fortran order in %d dimensions, save it in C order", h.Name, len(h.Shape))
	}
	return nil
}

// toLittle makes elements little endian; what is behind the last whole number stays.
func (h *Header) toLittle(b []byte) {
	for ; h.swap > 0 && len(b) >= h.swap; b = b[h.swap:] {
		slices.Reverse(b[:h.swap])
	}
}

// finish checks the elements, and puts them in row-major order.
func (a *Array) finish() error {
	if len(a.data)%a.Size != 0 || len(a.data)/a.Size != a.Count {
		return fmt.Errorf("array %s: %d bytes for %d elements of %d bytes", a.Name, len(a.data), a.Count, a.Size)
	}
	if a.Fortran {
		a.transpose()
	}
	return nil
}

// transpose turns a two-dimensional array in column-major order into row-major order.
func (a *Array) transpose() {
	out, rows, cols := make([]byte, len(a.data)), a.Shape[0], a.Shape[1]
	for i := range rows {
		for j := range cols {
			copy(out[(i*cols+j)*a.Size:], a.data[(j*rows+i)*a.Size:(j*rows+i+1)*a.Size])
		}
	}
	a.data = out
}

// Len is the number of elements that are there.
func (a *Array) Len() int { return len(a.data) / a.Size }

// Rows is the length of the first axis.
func (h *Header) Rows() int {
	if len(h.Shape) == 0 {
		return 0
	}
	return h.Shape[0]
}

// IsFloat reports whether the elements are float16, float32 or float64.
func (h *Header) IsFloat() bool { return h.Kind == 'f' && (h.Size == 2 || h.Size == 4 || h.Size == 8) }

// IsInt reports whether the elements are integers or booleans.
func (h *Header) IsInt() bool { return h.Kind == 'i' || h.Kind == 'u' || h.Kind == 'b' }

// IsText reports whether the elements are strings of a fixed length.
func (h *Header) IsText() bool { return h.Kind == 'U' || h.Kind == 'S' }

// Dtype is the type as NumPy writes it.
func (h *Header) Dtype() string {
	switch {
	case h.Kind == 'U':
		return fmt.Sprintf("U%d", h.Size/4) // UTF-32
	case h.IsText():
		return fmt.Sprintf("%c%d", h.Kind, h.Size)
	case h.Kind == 'b':
		return "bool"
	}
	return fmt.Sprintf("%s%d", map[byte]string{'f': "float", 'i': "int", 'u': "uint", 'c': "complex", 'M': "datetime",
		'm': "timedelta", 'V': "void"}[h.Kind],
		8*h.Size)
}

func (h *Header) String() string {
	dims := make([]string, len(h.Shape))
	for i, d := range h.Shape {
		dims[i] = strconv.Itoa(d)
	}
	return fmt.Sprintf("%s %s[%s]", h.Name, h.Dtype(), strings.Join(dims, ","))
}

// Squeeze drops the dimensions of 1 between the first and the last, as some servers have them for one step.
func (h *Header) Squeeze() {
	if len(h.Shape) > 2 && !slices.ContainsFunc(h.Shape[1:len(h.Shape)-1], func(d int) bool { return d != 1 }) {
		h.Shape = []int{h.Shape[0], h.Shape[len(h.Shape)-1]}
	}
}

// Float is element i of a float array.
func (a *Array) Float(i int) float64 {
	switch b := a.data[i*a.Size:]; a.Size {
	case 2:
		return float64(half.Value(binary.LittleEndian.Uint16(b)))
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	default:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}

// Number is element i of floats, integers or booleans; NaN of others.
func (a *Array) Number(i int) float64 {
	switch {
	case a.IsFloat():
		return a.Float(i)
	case a.IsInt():
		return float64(a.Int(i))
	}
	return math.NaN()
}

// Float32s are the elements as float32: the array's own memory where they are that.
func (a *Array) Float32s() []float32 {
	if v, err := wire.Values[float32](a.Name, a.data, a.Len()); a.Size == 4 && err == nil {
		return v
	}
	out := make([]float32, a.Len())
	for i := range out {
		out[i] = float32(a.Float(i))
	}
	return out
}

// Float64s are the elements as float64: the array's own memory where they are that.
func (a *Array) Float64s() []float64 {
	if v, err := wire.Values[float64](a.Name, a.data, a.Len()); a.Size == 8 && err == nil {
		return v
	}
	out := make([]float64, a.Len())
	for i := range out {
		out[i] = a.Float(i)
	}
	return out
}

// Int is element i of an integer, bool or datetime array; a uint64 above the int64 range becomes negative.
func (a *Array) Int(i int) int64 { return integer(a.data[i*a.Size:(i+1)*a.Size], a.Kind) }

// Text is element i of a text array, without its padding.
func (a *Array) Text(i int) string {
	b := a.data[i*a.Size : (i+1)*a.Size]
	if a.Kind == 'S' {
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
