//go:build amd64 && !purego

package kernel

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var pathNames = map[path]string{pathGo: "go", pathAVX2: "avx2", pathAVX512: "avx512"}

// TestAVX2NeedsNoAVX512: the generator's registers are those of both; the AVX2 functions may use the first 16 only.
func TestAVX2NeedsNoAVX512(t *testing.T) {
	src, err := os.ReadFile("rows_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	high := regexp.MustCompile(`\b(Z\d+|K[0-7]|[XY](1[6-9]|2\d|3[01]))\b`)
	found := 0
	for _, f := range strings.Split(string(src), "\nTEXT ·")[1:] {
		name := f[:strings.IndexByte(f, '(')]
		if strings.HasSuffix(name, "512") {
			continue
		}
		found++
		if m := high.FindString(f); m != "" {
			t.Errorf("%s uses %s", name, m)
		}
	}
	if found == 0 {
		t.Error("no AVX2 function found")
	}
}
