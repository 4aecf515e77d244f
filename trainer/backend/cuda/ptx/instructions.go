package main

import (
	"fmt"
	"regexp"
	"strings"
)

// simple are instructions of one expression: %[1]s is the type, %[2]s and so on the operands. Whole numbers are added
// and multiplied as unsigned ones, which wrap around.
var simple = map[string]string{
	"add": "%[2]s + %[3]s", "sub": "%[2]s - %[3]s", "mul": "%[2]s * %[3]s", "mul.lo": "%[2]s * %[3]s",
	"mad.lo": "%[2]s * %[3]s + %[4]s", "div.rn": "%[2]s / %[3]s", "rcp.rn": "(%[1]s)1 / %[2]s", "neg": "-%[2]s",
	"and": "%[2]s & %[3]s", "or": "%[2]s | %[3]s", "xor": "%[2]s ^ %[3]s", "mov": "%[2]s",
	"shl": "shifted_left<%[1]s>(%[2]s, %[3]s)", "shr": "shifted_right<%[1]s>(%[2]s, %[3]s)",
	"max": "larger<%[1]s>(%[2]s, %[3]s)", "ex2.approx": "std::exp2(%[2]s)",
	"mul.wide": "widened<%[1]s>(%[2]s, %[3]s)",
}

var (
	typeSuffix = regexp.MustCompile(`\.([usbf](?:8|16|32|64)|pred)$`)
	memoryOp   = regexp.MustCompile(`^(ld|st)(?:\.(global|shared|local|param))?(?:\.v([24]))?\.(\w+)$`)
	convertOp  = regexp.MustCompile(`^cvt(\.rn|\.rzi)?\.(\w+)\.(\w+)$`)
	paramText  = regexp.MustCompile(`^\[(?:\w+_param_|param|retval|func_retval)(\d+)(?:\+0)?\]$`)
)

// statement is the C++ of an instruction.
func (w *writer) statement(i instruction) (string, error) {
	if m := memoryOp.FindStringSubmatch(i.op); m != nil {
		if m[2] == "param" {
			return w.parameter(i, m[1], types[m[4]])
		}
		return w.memory(i, m)
	}
	if m := convertOp.FindStringSubmatch(i.op); m != nil {
		return w.convert(i, m)
	}
	switch {
	case i.op == "ret":
		if w.f.entry {
			return "return;", nil
		}
		return "return retval;", nil
	case i.op == "bar.sync" && i.args[0] == "0":
		return fmt.Sprintf("bar(%d);", i.line), nil
	case i.op == "bra" || i.op == "bra.uni":
		return w.branch(i), nil
	case i.op == "call":
		return fmt.Sprintf("retval = %s(arg);", i.args[0]), nil
	case strings.HasPrefix(i.op, "cvta."):
		v, err := w.operand(i.args[1], "u64")
		return fmt.Sprintf("%s = %s;", i.args[0][1:], v), err
	case strings.HasPrefix(i.op, "atom."):
		return w.atomic(i)
	}
	return w.arithmetic(i)
}

func (w *writer) arithmetic(i instruction) (string, error) {
	m := typeSuffix.FindStringSubmatch(i.op)
	if m == nil {
		return "", fmt.Errorf("no translation")
	}
	base, t, to := strings.TrimSuffix(i.op, m[0]), types[m[1]], i.args[0][1:]
	if strings.HasPrefix(base, "setp.") {
		return w.compare(i, base[len("setp."):], t)
	}
	if base == "add" || base == "sub" || base == "mul.lo" || base == "mad.lo" {
		t = strings.Replace(t, "i", "u", 1)
	}
	args := i.args[1:]
	if base == "selp" {
		v, err := w.values(args[:2], t)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s = %s ? %s : %s;", to, args[2][1:], v[0], v[1]), nil
	}
	if base == "mov" && m[1][0] == 'b' {
		return fmt.Sprintf("%s = bits_as<decltype(%s)>(%s);", to, to, args[0][1:]), nil
	}
	v, err := w.values(args, t)
	if err != nil {
		return "", err
	}
	if base == "fma.rn" {
		return fmt.Sprintf("%s = fma_at<%s>(%d, %s);", to, t, i.line, strings.Join(v, ", ")), nil
	}
	form := simple[base]
	if form == "" {
		return "", fmt.Errorf("no translation")
	}
	all := []any{t}
	for _, x := range v {
		all = append(all, x)
	}
	return fmt.Sprintf("%s = %s;", to, fmt.Sprintf(form, all...)), nil
}

func (w *writer) compare(i instruction, how, t string) (string, error) {
	c, ok := comparisons[how]
	if !ok {
		return "", fmt.Errorf("no translation")
	}
	v, err := w.values(i.args[1:], t)
	if err != nil {
		return "", err
	}
	set := fmt.Sprintf("%s = setp(%d, %s, %s);", i.args[0][1:], i.line, c[0], c[1])
	return fmt.Sprintf("{ %s a = %s, b = %s; %s }", t, v[0], v[1], set), nil
}

// branch spends of what bounds the time of a thread where it goes back.
func (w *writer) branch(i instruction) string {
	label := strings.TrimPrefix(i.args[0], "$")
	if w.labels[label] < i.line {
		return fmt.Sprintf("back(%d); goto %s;", i.line, label)
	}
	return fmt.Sprintf("goto %s;", label)
}

// parameter passes raw bits: from a kernel's or function's own, to those of a call, or from its result.
func (w *writer) parameter(i instruction, what, t string) (string, error) {
	at, value := 0, 1
	if what == "ld" {
		at, value = 1, 0
	}
	m := paramText.FindStringSubmatch(i.args[at])
	r := i.args[value]
	switch {
	case m == nil:
		return "", fmt.Errorf("address %s not understood", i.args[at])
	case what == "ld" && strings.HasPrefix(i.args[1], "[retval"):
		return fmt.Sprintf("%s = (decltype(%s))raw_as<%s>(retval);", r[1:], r[1:], t), nil
	case what == "ld":
		return fmt.Sprintf("%s = (decltype(%s))raw_as<%s>(param[%s]);", r[1:], r[1:], t, m[1]), nil
	}
	v, err := w.operand(r, t)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(i.args[0], "[func_retval") {
		return fmt.Sprintf("retval = raw_of<%s>(%s);", t, v), nil
	}
	return fmt.Sprintf("arg[%s] = raw_of<%s>(%s);", m[1], t, v), nil
}

// memory is a load or a store of one number, two or four.
func (w *writer) memory(i instruction, m []string) (string, error) {
	what, space, t := m[1], m[2], types[m[4]]
	if space == "" {
		space = "generic"
	}
	at, list := i.args[0], i.args[1]
	if what == "ld" {
		at, list = list, at
	}
	address, err := w.address(at)
	if err != nil {
		return "", err
	}
	regs := operands(strings.Trim(list, "{}"))
	head := fmt.Sprintf("if (goes(%d)) { u64 at = moved(%d, %s, sizeof(%s)); check<%s, %d, %s>(%d, at); ",
		i.line, i.line, address, t, t, len(regs), space, i.line)
	var code strings.Builder
	for n, r := range regs {
		if what == "ld" {
			v := fmt.Sprintf("load<%s, %s>(%d, at + %d * sizeof(%s))", t, space, i.line, n, t)
			fmt.Fprintf(&code, "%s = (decltype(%s))%s; ", r[1:], r[1:], v)
			continue
		}
		v, err := w.operand(r, t)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&code, "store<%s, %s>(%d, at + %d * sizeof(%s), %s); ", t, space, i.line, n, t, v)
	}
	return head + code.String() + "}", nil
}

func (w *writer) atomic(i instruction) (string, error) {
	m := typeSuffix.FindStringSubmatch(i.op)
	if m == nil || !strings.Contains(i.op, ".add.") || strings.Contains(i.op, "shared") {
		return "", fmt.Errorf("no translation")
	}
	t, to := types[m[1]], i.args[0][1:]
	address, err := w.address(i.args[1])
	if err != nil {
		return "", err
	}
	v, err := w.operand(i.args[2], t)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("if (goes(%d)) %s = atomic_add<%s>(%d, moved(%d, %s, sizeof(%s)), %s);",
		i.line, to, t, i.line, i.line, address, t, v), nil
}

func (w *writer) convert(i instruction, m []string) (string, error) {
	to, from := types[m[2]], types[m[3]]
	v, err := w.operand(i.args[1], from)
	if err != nil || to == "" || from == "" {
		return "", fmt.Errorf("no translation (%w)", err)
	}
	r := i.args[0][1:]
	if m[1] == ".rzi" {
		return fmt.Sprintf("%s = (decltype(%s))toward_zero<%s>(%s);", r, r, to, v), nil
	}
	return fmt.Sprintf("%s = (decltype(%s))(%s)%s;", r, r, to, v), nil
}
