// Package printable keeps what comes from Kafka, from files and from people from commanding a terminal: control
// characters, escape sequences, and characters that turn the direction of the text or cannot be seen.
//
// [Text] escapes one name or reason, line feeds too, so that it cannot look like a line of its own. A [Writer] escapes
// all that a command prints but its line feeds and tabs: nothing that somebody forgot gets through. Escapes are those
// of JSON strings, so JSON stays JSON. It must not know who prints what.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// unsafe reports whether a character may change what others look like. Joiners within words and emoji may not.
func unsafe(r rune) bool {
	const nonJoiner, joiner = 0x200c, 0x200d
	if r == nonJoiner || r == joiner {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// escape appends a character as in a JSON string.
func escape(b *strings.Builder, r rune) {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// Text is s with everything escaped that is not plain text of one line; bytes that are not UTF-8 become U+FFFD.
func Text(s string) string {
	if strings.IndexFunc(s, unsafe) < 0 && utf8.ValidString(s) {
		return s
	}
	return escaped(s, unsafe)
}

func escaped(s string, bad func(rune) bool) string {
	var b strings.Builder
	for _, r := range s {
		if bad(r) {
			escape(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Fprintf is fmt.Fprintf with each text among the arguments as Text has it.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	safe := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case string:
			safe[i] = Text(v)
		case error:
			safe[i] = Text(v.Error())
		case fmt.Stringer:
			safe[i] = Text(v.String())
		default:
			safe[i] = a
		}
	}
	return fmt.Fprintf(w, format, safe...)
}

// Writer writes text of many lines with everything escaped but line feeds and tabs.
type Writer struct {
	w    io.Writer
	rest []byte // of a character that is not complete
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	end := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if c := text[len(text)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-i:]) {
				end = len(text) - i
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	out := escaped(string(text[:end]), func(r rune) bool { return r != '\n' && r != '\t' && unsafe(r) })
	if _, err := io.WriteString(w.w, out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw is what a writer writes to, for those who draw or write data.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*Writer); ok {
		return p.w
	}
	return w
}
