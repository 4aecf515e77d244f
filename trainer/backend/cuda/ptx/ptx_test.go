package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func translated(text string) (string, error) {
	all, err := parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = translate(&out, all)
	return out.String(), err
}

// TestCommitted: everything in the committed PTX has a translation.
func TestCommitted(t *testing.T) {
	text, err := os.ReadFile("../kernels/kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	out, err := translated(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string]int{
		"fma_at<": strings.Count(string(text), "\tfma.rn."),
		"bar(":    strings.Count(string(text), "\tbar.sync 0;"),
		"setp(":   strings.Count(string(text), "\tsetp."),
	} {
		if got := strings.Count(out, what); got != n {
			t.Errorf("%d of %s, want %d", got, what, n)
		}
	}
}

const kernelText = `.version 6.3
.visible .entry k(
	.param .u64 k_param_0
)
.maxntid 256, 1, 1
{
	.reg .b32 %r<3>;
	mov.u32 %r1, %tid.x;
	INSTRUCTION
	ret;
}
`

// TestRefuses: what is not known is an error with its line, and is not left out.
func TestRefuses(t *testing.T) {
	for _, text := range []string{
		"popc.b32 %r2, %r1;", "bar.sync 1;", "bar.warp.sync 3;", "mov.u32 %r2, %laneid;", "ld.global.f32 %r2, [%r1-4];",
		"atom.shared.add.u32 %r2, [%r1], 1;", "setp.num.f32 %p1, %f1, %f2;", "add.s32 %r2, %r1, 1",
	} {
		_, err := translated(strings.Replace(kernelText, "INSTRUCTION", text, 1))
		if err == nil || !strings.Contains(err.Error(), "line 9") {
			t.Errorf("%s: error %v, want one with line 9", text, err)
		}
	}
	if _, err := translated(strings.Replace(kernelText, "INSTRUCTION", "add.s32 %r2, %r1, 1;", 1)); err != nil {
		t.Error(err)
	}
}
