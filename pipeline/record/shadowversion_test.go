package record_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

func TestShadowNames(t *testing.T) {
	for _, c := range []struct {
		name, base string
		n          int
		ok         bool
	}{{"1+head1", "1", 1, true}, {"1+head2+head13", "1+head2", 13, true}, {"+head1", "", 1, true}, {"1+head0", "", 0,
		false}, {"1+head01", "", 0, false},
		{"1+head", "", 0, false}, {"1+head-1", "", 0, false}, {"1", "", 0, false}, {"1+head1x", "", 0, false}} {
		base, n, ok := record.BaseVersion(c.name)
		if ok != c.ok || ok && (base != c.base || n != c.n || record.ShadowVersion(base, n) != c.name) {
			t.Errorf("%q: got %q, %d, %v; want %q, %d, %v", c.name, base, n, ok, c.base, c.n, c.ok)
		}
	}
}
