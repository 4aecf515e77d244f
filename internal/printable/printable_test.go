package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/plumbline/plumbline/internal/printable"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"resnet/1 größer 日本 👩‍🚀": "resnet/1 größer 日本 👩‍🚀",
		"\x1b[2J\x1b]0;x\a":      `\u001b[2J\u001b]0;x\u0007`,
		"a\nok\r\tb\x7f\u009b":   `a\u000aok\u000d\u0009b\u007f\u009b`,
		"evil\u202egpj.\u2066":   `evil\u202egpj.\u2066`,
		"\u2028\ufeff\u200b":     `\u2028\ufeff\u200b`,
		"\U000e0041":             `\udb40\udc41`,
		"\xff":                   "\ufffd",
	} {
		if got := printable.Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFprintf(t *testing.T) {
	var b bytes.Buffer
	_, err := printable.Fprintf(&b, "%s %v %d %.2f", "\x1b", errors.New("\a"), 3, 0.5)
	if got, want := b.String(), `\u001b \u0007 3 0.50`; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestWriter writes text in pieces of every length: characters are cut anywhere, and JSON means the same.
func TestWriter(t *testing.T) {
	type names struct{ A, B string }
	in := names{"\u202eé👩\U000e0041\u009b", "日本\x7f"}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(in); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < text.Len(); n++ {
		var out bytes.Buffer
		w := printable.NewWriter(&out)
		for rest := text.Bytes(); len(rest) > 0; rest = rest[min(n, len(rest)):] {
			if _, err := w.Write(rest[:min(n, len(rest))]); err != nil {
				t.Fatal(err)
			}
		}
		var got names
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != in {
			t.Fatalf("pieces of %d: %q, %v", n, out.String(), err)
		}
		if bytes.ContainsAny(out.Bytes(), "\u202e\u009b\x7f\U000e0041") {
			t.Fatalf("pieces of %d: %q", n, out.String())
		}
	}
}
