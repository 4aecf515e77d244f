package cuda

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"github.com/plumbline/plumbline/trainer/backend"
)

// TestEntries: the image has every kernel, with the arguments that the launches give, and nothing else.
func TestEntries(t *testing.T) {
	entries := map[string]string{}
	types := map[string]string{"u64": "p", "u32": "i", "f32": "f"}
	parameter := regexp.MustCompile(`\.param \.(\w+) `)
	for _, m := range regexp.MustCompile(`(?s)\.entry (\w+)\((.*?)\)`).FindAllStringSubmatch(image, -1) {
		var signature strings.Builder
		for _, p := range parameter.FindAllStringSubmatch(m[2], -1) {
			signature.WriteString(types[p[1]])
		}
		entries[m[1]] = signature.String()
	}
	if len(entries) != len(allKernels) {
		t.Errorf("%d entries in the image, want %d", len(entries), len(allKernels))
	}
	for _, k := range allKernels {
		if got := entries[k.name]; got != k.signature {
			t.Errorf("kernel %s has arguments %q, want %q", k.name, got, k.signature)
		}
		if len(k.signature) > maxArgs {
			t.Errorf("kernel %s has %d arguments, a frame has room for %d", k.name, len(k.signature), maxArgs)
		}
	}
}

func TestMarshal(t *testing.T) {
	f := &frame{}
	k := kernel{"k", "pif"}
	at := f.marshal(k, []arg{ptr(1 << 40), num(-7), real32(1.5)})
	args := unsafe.Slice((*unsafe.Pointer)(at), 3)
	if p, i, v := *(*uint64)(args[0]), *(*int32)(args[1]), *(*float32)(args[2]); p != 1<<40 || i != -7 || v != 1.5 {
		t.Errorf("arguments %v, %v, %v; want 1<<40, -7, 1.5", p, i, v)
	}
	for _, args := range [][]arg{{ptr(1), num(2)}, {ptr(1), ptr(2), real32(3)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for arguments %v of %q", args, k.signature)
				}
			}()
			f.marshal(k, args)
		}()
	}
}

// TestLayout: structures have the sizes that the kernels' have, whose members need no padding.
func TestLayout(t *testing.T) {
	if epochBytes != 64 || planBytes != 32+maxTerms*32 {
		t.Errorf("structures of %d and %d bytes, want 64 and %d", epochBytes, planBytes, 32+maxTerms*32)
	}
}

func TestPlans(t *testing.T) {
	for text, want := range map[string]bool{
		"ce":                                 true,
		"squared":                            true,
		"smoothing{epsilon:0.1}":             true,
		"focal":                              true,
		"flsd53":                             true,
		"inverse_focal":                      true,
		"dual_focal{variant:released}":       true,
		"entropy":                            true,
		"ce + 0.1*entropy + squared + focal": true,
		"au":                                 true,
		"au{csf:negent,kappa:0.7,nu:0.2,bins:20,normalise:true}(focal{gamma:2})": true,
		"ce + 0.5*au":            true,
		"au{through:true}":       false,
		"au + au{csf:margin}":    false,
		"au(mbls)":               false,
		"aurc":                   false,
		"classwise":              false,
		"mbls":                   false,
		"ce + mmce":              false,
		"ce + ce + ce + ce + ce": false,
		"dual_focal + dual_focal{variant:released}": false,
		"ce + 1000000*squared":                      true,
		"kde_xe":                                    false,
	} {
		c, err := compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if c.fused != want {
			t.Errorf("%s: in the kernels %v, want %v", text, c.fused, want)
		}
	}
	c, err := compile("2*focal{gamma:4} + 0.25*au{csf:margin,nu:0.2,bins:20}(smoothing)")
	if err != nil {
		t.Fatal(err)
	}
	want := lossPlan{Terms: 2, CSF: 1, Bins: 20, Kappa: 0.5, Nu: 0.2}
	want.Term[0] = lossTerm{Kind: lossFocal, Weight: 2, Gamma: 4}
	want.Term[1] = lossTerm{Kind: lossSmoothing, AU: 1, Weight: 0.25, Gamma: 0.05}
	if c.plan != want {
		t.Errorf("plan %+v, want %+v", c.plan, want)
	}
	if _, err := compile("nothing"); err == nil {
		t.Error("no error for a loss that does not exist")
	}
}

// TestNoLibrary: without a driver, Open says so, and that another backend can do.
func TestNoLibrary(t *testing.T) {
	b := &Backend{Library: "libthat-is-nowhere.so"}
	for _, f := range []func() error{
		func() error { _, err := b.Describe(); return err },
		func() error { _, err := b.Open(problem()); return err },
	} {
		if err := f(); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "cuda") {
			t.Errorf("error %v, want one of cuda that says it is not supported", err)
		}
	}
}
