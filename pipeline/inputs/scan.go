package inputs

import (
	"unicode/utf8"

	"github.com/plumbline/plumbline/arrowio/wire"
)

// scanner reads JSON as RFC 8259 has it, and nothing else, from bytes that may be hostile: each byte once or twice, and
// no deeper than maxDepth.
type scanner struct {
	b     []byte
	i     int
	depth int
	buf   []byte // of text with escapes
}

const maxDepth = 256

// NotJSON is why a record is refused that is no JSON.
const NotJSON = "not_json"

// fail says where the bytes are wrong.
func (s *scanner) fail(want string) error {
	if s.i >= len(s.b) {
		return wire.Errorf(NotJSON, "byte %d: the record ends where %s must be", s.i, want)
	}
	rest := s.b[s.i:min(len(s.b), s.i+24)]
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if len(rest) >= len(word) && string(rest[:len(word)]) == word {
			return wire.Errorf(NotJSON, "byte %d: JSON has no %s; send null where there is no number, "+
				"-1e9 for a masked logit", s.i, word)
		}
	}
	return wire.Errorf(NotJSON, "byte %d: %.24q where %s must be", s.i, rest, want)
}

// peek is the next byte that is no space; 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// expect takes one byte.
func (s *scanner) expect(c byte, what string) error {
	if s.peek() != c {
		return s.fail(what)
	}
	s.i++
	return nil
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > maxDepth {
		return wire.Errorf(wire.TooLarge, "byte %d: nested deeper than %d", s.i, maxDepth)
	}
	s.i++
	return nil
}

// more reports whether another item or field follows, after a first one or as the first one.
func (s *scanner) more(end byte, first bool) (bool, error) {
	c := s.peek()
	if c == end {
		s.i++
		s.depth--
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, s.fail("a comma, or the end of a list or an object,")
	}
	s.i++
	return true, nil
}

// object calls field for each field, which reads its value. The name is valid until the call returns.
func (s *scanner) object(field func(name []byte) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more('}', first)
		if err != nil || !more {
			return err
		}
		if s.peek() != '"' {
			return s.fail("the name of a field")
		}
		name, err := s.text()
		if err == nil {
			err = s.expect(':', "a colon")
		}
		if err == nil {
			err = field(name)
		}
		if err != nil {
			return err
		}
	}
}

// array calls item for each item, which reads it.
func (s *scanner) array(item func(i int) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.more(']', i == 0)
		if err != nil || !more {
			return err
		}
		if err := item(i); err != nil {
			return err
		}
	}
}

// skip passes over a value.
func (s *scanner) skip() error {
	switch c := s.peek(); {
	case c == '{':
		return s.object(func([]byte) error { return s.skip() })
	case c == '[':
		return s.array(func(int) error { return s.skip() })
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || c >= '0' && c <= '9':
		_, err := s.number()
		return err
	}
	_, err := s.word()
	return err
}

// word reads true, false or null, and returns its first letter.
func (s *scanner) word() (byte, error) {
	s.peek()
	for _, w := range [...]string{"null", "true", "false"} {
		if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
			s.i += len(w)
			return w[0], nil
		}
	}
	return 0, s.fail("a value")
}

// number reads a number.
func (s *scanner) number() ([]byte, error) {
	b, i := s.b, s.i
	start := i
	digits := func() bool {
		from := i
		for i < len(b) && b[i]-'0' < 10 {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	ok := true
	if i < len(b) && b[i] == '0' {
		i++
	} else {
		ok = digits()
	}
	if ok && i < len(b) && b[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		if i > start && i < len(b) && b[i] == 'I' {
			i = start
		}
		s.i = i
		return nil, s.fail("a digit of a number")
	}
	s.i = i
	return b[start:i], nil
}

// text reads a text at its quote. It is valid until the next one is read.
func (s *scanner) text() ([]byte, error) {
	start := s.i + 1
	for i := start; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return s.b[start:i], nil
		case c == '\\':
			s.i = i
			return s.escaped(s.b[start:i])
		case c < ' ':
			s.i = i
			return nil, s.fail("text without control characters")
		}
	}
	s.i = len(s.b)
	return nil, s.fail("the end of a text")
}

// escaped reads on from the first escape.
func (s *scanner) escaped(head []byte) ([]byte, error) {
	s.buf = append(s.buf[:0], head...)
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.buf, nil
		case c < ' ':
			return nil, s.fail("text without control characters")
		case c != '\\':
			s.buf = append(s.buf, c)
			s.i++
		default:
			s.i++
			if err := s.escape(); err != nil {
				return nil, err
			}
		}
	}
	return nil, s.fail("the end of a text")
}

func (s *scanner) escape() error {
	if s.i >= len(s.b) {
		return s.fail("an escape")
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := s.b[s.i]
	for k := range len(from) {
		if from[k] == c {
			s.buf = append(s.buf, to[k])
			s.i++
			return nil
		}
	}
	if c != 'u' {
		return s.fail("an escape")
	}
	r, ok := s.hex(s.i + 1)
	if !ok {
		return s.fail("an escape of four hexadecimal digits")
	}
	s.i += 5
	const high, low, end = 0xd800, 0xdc00, 0xe000
	if r >= high && r < end {
		second, ok := rune(0), false
		if r < low && s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
			second, ok = s.hex(s.i + 2)
		}
		if ok && second >= low && second < end {
			r = (r-high)<<10 + second - low + 0x10000
			s.i += 6
		} else {
			r = utf8.RuneError
		}
	}
	s.buf = utf8.AppendRune(s.buf, r)
	return nil
}

func (s *scanner) hex(i int) (r rune, ok bool) {
	if i+4 > len(s.b) {
		return 0, false
	}
	for _, c := range s.b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
