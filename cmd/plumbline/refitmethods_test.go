package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/config"
)

// TestEveryMethodCanRefit: the configuration allows the methods of calib/calibrator, and no other.
func TestEveryMethodCanRefit(t *testing.T) {
	allowed := func(method string) bool {
		_, problems := config.Parse([]byte(fmt.Sprintf("refit: {method: %q}\n", method)), "c.yaml")
		return problems == nil
	}
	for _, m := range calibrator.Methods() {
		if !allowed(m.Name) || allowed(m.Name+calibrator.Suffix) != m.Scalable {
			t.Errorf("%s: allowed %v, with %s %v; want true, %v", m.Name, allowed(m.Name), calibrator.Suffix,
				allowed(m.Name+calibrator.Suffix), m.Scalable)
		}
	}
	if !allowed("auto") || !allowed("none") || allowed("temperatur") || allowed(strings.ToUpper("auto")) {
		t.Error("want auto and none to be allowed, and what is no method not")
	}
}
