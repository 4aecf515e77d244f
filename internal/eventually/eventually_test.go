package eventually_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
)

// failing is a test that notes its failure, and stops as a test does.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

func TestGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got := eventually.Get(t, "a second", func() (time.Duration, bool) {
			d := time.Since(begin)
			return d,
				d >= time.Second
		})
		if got < time.Second || got > 1100*time.Millisecond {
			t.Errorf("seen after %s, want it within a tenth of a second after one", got)
		}
	})
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{}
		begin := time.Now()
		defer func() {
			if recover() != f || !strings.Contains(f.said, "the moon; last seen: 7") {
				t.Errorf("said %q", f.said)
			}
			if took := time.Since(begin); took < eventually.Patience {
				t.Errorf("gave up after %s", took)
			}
		}()
		eventually.Get(f, "the moon", func() (int, bool) { return 7, false })
	})
}

func TestTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		eventually.True(t, "three looks", func() bool { n++; return n == 3 })
		if n != 3 {
			t.Errorf("looked %d times", n)
		}
	})
}
