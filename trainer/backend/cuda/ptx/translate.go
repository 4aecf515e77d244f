package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// types are the C++ types of PTX's; registers' those of their names.
var (
	types = map[string]string{
		"u8": "u8", "u16": "u16", "s16": "i16", "b16": "u16", "u32": "u32", "s32": "i32", "b32": "u32",
		"u64": "u64", "s64": "i64", "b64": "u64", "f32": "float", "f64": "double", "pred": "bool",
	}
	registerTypes = map[string]string{
		"p": "bool", "rs": "u16", "r": "u32", "rd": "u64", "f": "float", "fd": "double", "SP": "u64", "SPL": "u64",
	}
	specials = map[string]string{
		"%tid.x": "thread_x()", "%ntid.x": "threads_x()", "%ctaid.x": "block_x()", "%ctaid.y": "block_y()",
		"%nctaid.x": "blocks_x()",
	}
	// comparisons have what a comparison is, and what it becomes where its boundary is moved.
	comparisons = map[string][2]string{
		"eq": {"a == b", "a >= b"}, "ne": {"a < b || a > b", "a < b"},
		"lt": {"a < b", "a <= b"}, "le": {"a <= b", "a < b"}, "gt": {"a > b", "a >= b"}, "ge": {"a >= b", "a > b"},
		"neu": {"!(a == b)", "!(a >= b)"}, "leu": {"!(a > b)", "!(a >= b)"}, "ltu": {"!(a >= b)", "!(a > b)"},
		"gtu": {"!(a <= b)", "!(a < b)"}, "geu": {"!(a < b)", "!(a <= b)"}, "equ": {"!(a < b || a > b)", "!(a < b)"},
	}
	registerName = regexp.MustCompile(`^%((?:p|rs|r|rd|f|fd)\d+|SPL?)$`)
	addressText  = regexp.MustCompile(`^\[(%?\w+)(?:\+(-?\d+))?\]$`)
)

// gap lies between the variables of shared memory, and behind those of local memory, so that an index out of one is not
// in another, nor in what the stand-in has on its stack.
const gap = 256

// writer translates one function.
type writer struct {
	io.Writer
	f       *function
	labels  map[string]int // their lines
	symbols map[string]string
}

// translate writes all functions, and a table of the kernels.
func translate(w io.Writer, all []*function) error {
	for _, f := range all {
		if !f.entry {
			fmt.Fprintf(w, "static u64 %s(const u64 *);\n", f.name)
		}
	}
	last := 0
	for _, f := range all {
		one := &writer{Writer: w, f: f, labels: map[string]int{}, symbols: map[string]string{}}
		if err := one.body(); err != nil {
			return err
		}
		last = max(last, f.body[len(f.body)-1].line)
	}
	fmt.Fprintf(w, "static constexpr int last_line = %d;\nstatic Kernels table() {\n\treturn {\n", last)
	for _, f := range all {
		if !f.entry {
			continue
		}
		var sizes, spans []string
		for _, p := range f.params {
			sizes = append(sizes, fmt.Sprintf("sizeof(%s)", types[p]))
		}
		for _, v := range f.shared {
			spans = append(spans, fmt.Sprintf("{shared_%s, %d}", v.name, v.bytes))
		}
		fmt.Fprintf(w, "\t\t{\"%s\", {\"%s\", %s, %d, {%s}, {%s}}},\n", f.name, f.name, f.name, f.most,
			strings.Join(sizes, ", "), strings.Join(spans, ", "))
	}
	fmt.Fprint(w, "\t};\n}\n")
	return nil
}

func (w *writer) body() error {
	at := gap
	for _, v := range w.f.shared {
		at = (at + v.align - 1) / v.align * v.align
		fmt.Fprintf(w, "static constexpr u64 shared_%s = %d;\n", v.name, at)
		w.symbols[v.name] = "shared_" + v.name
		at += v.bytes + gap
	}
	result := "u64"
	if w.f.entry {
		result = "void"
	}
	fmt.Fprintf(w, "static %s %s([[maybe_unused]] const u64 *param) {\n", result, w.f.name)
	for _, v := range w.f.local {
		fmt.Fprintf(w, "\talignas(%d) u8 %s[%d];\n", v.align, v.name, v.bytes+gap)
		fmt.Fprintf(w, "\tmemset(%s, 0xff, sizeof %s);\n", v.name, v.name)
		w.symbols[v.name] = "(u64)" + v.name
	}
	w.declare()
	for _, i := range w.f.body {
		if i.label != "" {
			w.labels[i.label] = i.line
		}
	}
	for _, i := range w.f.body {
		if i.label != "" {
			fmt.Fprintf(w, "%s:\n", i.label)
			continue
		}
		code, err := w.statement(i)
		if err != nil {
			return fmt.Errorf("line %d: %s %s: %w", i.line, i.op, strings.Join(i.args, ", "), err)
		}
		if i.guard != "" {
			code = fmt.Sprintf("if (%s) { %s }", i.guard, code)
		}
		fmt.Fprintf(w, "\t%s // %d\n", code, i.line)
	}
	fmt.Fprint(w, "}\n\n")
	return nil
}

// declare declares the registers that are used, with what is no sensible value.
func (w *writer) declare() {
	used := map[string]bool{"retval": true}
	name := regexp.MustCompile(`%([a-zA-Z]+\d*)\b`)
	for _, i := range w.f.body {
		for _, a := range i.args {
			for _, m := range name.FindAllStringSubmatch(a, -1) {
				if registerName.MatchString("%" + m[1]) {
					used[m[1]] = true
				}
			}
		}
		used[strings.TrimPrefix(i.guard, "!")] = true
	}
	for _, r := range slices.Sorted(maps.Keys(used)) {
		if t := registerTypes[strings.TrimRight(r, "0123456789")]; t != "" {
			fmt.Fprintf(w, "\t[[maybe_unused]] %s %s = poison<%s>();\n", t, r, t)
		}
	}
	fmt.Fprint(w, "\t[[maybe_unused]] u64 arg[8] = {}, retval = 0;\n")
}

// operand is a value of type t.
func (w *writer) operand(text, t string) (string, error) {
	switch {
	case specials[text] != "":
		return specials[text], nil
	case registerName.MatchString(text):
		r := text[1:]
		if registerTypes[strings.TrimRight(r, "0123456789")] == t {
			return r, nil
		}
		return fmt.Sprintf("(%s)%s", t, r), nil
	case w.symbols[text] != "":
		return w.symbols[text], nil
	case strings.HasPrefix(text, "0f"):
		return "float_of(0x" + text[2:] + "u)", nil
	case strings.HasPrefix(text, "0d"):
		return "double_of(0x" + text[2:] + "ull)", nil
	}
	if _, err := strconv.ParseInt(text, 0, 64); err == nil {
		return fmt.Sprintf("(%s)%sll", t, text), nil
	}
	if _, err := strconv.ParseUint(text, 0, 64); err == nil {
		return fmt.Sprintf("(%s)%sull", t, text), nil
	}
	return "", fmt.Errorf("operand %s not understood", text)
}

// values are the operands behind the first.
func (w *writer) values(args []string, t string) ([]string, error) {
	var out []string
	for _, a := range args {
		v, err := w.operand(a, t)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// address is that of [%rd1+8] or [name+8].
func (w *writer) address(text string) (string, error) {
	m := addressText.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("address %s not understood", text)
	}
	at, err := w.operand(m[1], "u64")
	if err != nil {
		return "", err
	}
	if m[2] == "" {
		return at, nil
	}
	return fmt.Sprintf("%s + (u64)%sll", at, m[2]), nil
}
