package engine

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
)

// TestIDKey: an archived id is the HMAC-SHA-256 of the id, cut to its length; no key leaves it alone, and a key that
// can be guessed is refused without being shown.
func TestIDKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if hash, err := idKey(""); hash != nil || err != nil {
		t.Fatal("without a key", err)
	}
	if _, err := idKey(file); err == nil {
		t.Error("no file, no error")
	}
	for _, c := range []struct {
		key string
		ok  bool
	}{{"", false}, {"short-secret", false}, {"0123456789abcdef", true}} {
		if err := os.WriteFile(file, []byte(c.key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		hash, err := idKey(file)
		if (err == nil) != c.ok || err != nil && c.key != "" && strings.Contains(err.Error(), c.key) {
			t.Errorf("key %q: %v", c.key, err)
		}
		if !c.ok {
			continue
		}
		id := arrowio.HashID("a row")
		mac := hmac.New(sha256.New, []byte(c.key))
		mac.Write(id[:])
		if got, want := hash(id), mac.Sum(nil)[:16]; !bytes.Equal(got[:], want) {
			t.Errorf("got %x, want %x", got, want)
		}
		if hash(arrowio.ID{}) != (arrowio.ID{}) {
			t.Error("a row without an id has one in the archive")
		}
	}
}
