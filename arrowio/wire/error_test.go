package wire

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDetailsEndAtACharacter: a detail has a bound in bytes and is cut between characters. Bytes that are no UTF-8 are
// cut about there.
func TestDetailsEndAtACharacter(t *testing.T) {
	for name, text := range map[string]string{"é": "é", "€": "€", "😀": "😀", "a": "a"} {
		for before := range 4 {
			e := Errorf(Shape, "%s%s", strings.Repeat("x", before), strings.Repeat(text, 300))
			if n := len(e.Detail); !utf8.ValidString(e.Detail) || n > 240 || n <= 240-len(text) {
				t.Errorf("%d bytes before %q: detail of %d bytes, valid: %t", before, name, n,
					utf8.ValidString(e.Detail))
			}
		}
	}
	if e := Errorf(Shape, "%s", strings.Repeat("\x80", 300)); len(e.Detail) < 236 {
		t.Errorf("%d bytes of no text", len(e.Detail))
	}
	if e := Errorf(Shape, "é%d", 1); e.Detail != "é1" {
		t.Errorf("detail %q", e.Detail)
	}
}

// TestForeignBytesAreShownAsText: who sends JSON or text sees that it is this.
func TestForeignBytesAreShownAsText(t *testing.T) {
	for begin, want := range map[string]string{`{"id": 1}`: `"{\"id"`, "\x00\x00\x00\x07pl": `"\x00\x00\x00\a"`} {
		_, _, _, _, err := Next([]byte(begin + "........"))
		if err == nil || !strings.Contains(err.Error(), "message begins with "+want+", an Arrow IPC stream with") {
			t.Errorf("%q: %v", begin, err)
		}
	}
}
