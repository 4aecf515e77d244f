package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// function is a kernel, or a function that kernels call.
type function struct {
	name   string
	entry  bool
	params []string // their types
	most   int      // threads a block
	regs   []registers
	shared []variable
	local  []variable
	body   []instruction
}

// registers are those of one type: %NAME0 up to %NAME(n-1), or one without a number.
type registers struct {
	name string
	n    int
}

type variable struct {
	name         string
	align, bytes int
}

// instruction is one line, or a call with its arguments. A label has no op.
type instruction struct {
	line  int
	label string
	guard string // the predicate, with ! before it; empty: none
	op    string // mul.wide.s32
	args  []string
}

var (
	entryLine  = regexp.MustCompile(`^\.visible \.entry (\w+)\($`)
	funcLine   = regexp.MustCompile(`^\.func +\(\.param \.b64 func_retval0\) (\w+)\(?$`)
	paramLine  = regexp.MustCompile(`^\.param \.(\w+) (\w+),?$`)
	regLine    = regexp.MustCompile(`^\.reg \.\w+\s+%(\w+?)(?:<(\d+)>)?;$`)
	arrayLine  = regexp.MustCompile(`^\.(shared|local) \.align (\d+) \.b8\s+(\w+)\[(\d+)\];$`)
	threadLine = regexp.MustCompile(`^\.maxntid (\d+), 1, 1$`)
	labelLine  = regexp.MustCompile(`^\$(\w+):$`)
	opLine     = regexp.MustCompile(`^(?:@(!?)%(\w+)\s+)?([a-z][\w.]*)\s*(.*?);?$`)
	callLine   = regexp.MustCompile(`^call\.uni(?: \((\w+)\),)?\s*$`)
)

// parser goes through the lines.
type parser struct {
	lines []string
	at    int // of the line behind the one last taken
}

// next is the next line that says something, without what surrounds it; false at the end.
func (p *parser) next() (string, bool) {
	for p.at < len(p.lines) {
		text, _, _ := strings.Cut(p.lines[p.at], "//")
		p.at++
		if text = strings.TrimSpace(text); text != "" {
			return text, true
		}
	}
	return "", false
}

func (p *parser) wrong(text string) error {
	return fmt.Errorf("line %d: not understood: %s", p.at, text)
}

// parse reads a module.
func parse(text string) ([]*function, error) {
	p := &parser{lines: strings.Split(text, "\n")}
	var all []*function
	for {
		line, ok := p.next()
		if !ok {
			return all, nil
		}
		f := &function{}
		if m := entryLine.FindStringSubmatch(line); m != nil {
			f.name, f.entry = m[1], true
		} else if m := funcLine.FindStringSubmatch(line); m != nil {
			f.name = m[1]
		} else if strings.HasPrefix(line, ".version ") || strings.HasPrefix(line, ".target ") ||
			strings.HasPrefix(line, ".address_size 64") {
			continue
		} else {
			return nil, p.wrong(line)
		}
		declared, err := p.parseFunction(f)
		if err != nil {
			return nil, err
		}
		if !declared {
			all = append(all, f)
		}
	}
}

// parseFunction reads parameters, directives and body; declared is set where there is no body.
func (p *parser) parseFunction(f *function) (declared bool, err error) {
	for {
		line, ok := p.next()
		if !ok {
			return false, fmt.Errorf("%s: the text ends", f.name)
		}
		switch {
		case line == ";":
			return true, nil
		case line == "{":
			return false, p.body(f)
		case line == "(", line == ")", strings.HasPrefix(line, ".minnctapersm "):
		case threadLine.MatchString(line):
			f.most, err = strconv.Atoi(threadLine.FindStringSubmatch(line)[1])
			if err != nil {
				return false, err
			}
		default:
			m := paramLine.FindStringSubmatch(line)
			if m == nil || m[2] != fmt.Sprintf("%s_param_%d", f.name, len(f.params)) {
				return false, p.wrong(line)
			}
			f.params = append(f.params, m[1])
		}
	}
}

func (p *parser) body(f *function) error {
	for {
		line, ok := p.next()
		if !ok {
			return fmt.Errorf("%s: the text ends", f.name)
		}
		if line == "}" {
			if p.lines[p.at-1] == "}" {
				return nil
			}
			continue // the end of a call
		}
		if line == "{" || strings.HasPrefix(line, ".param ") || line == ".reg .b32 temp_param_reg;" {
			continue
		}
		if err := p.statement(f, line); err != nil {
			return err
		}
	}
}

func (p *parser) statement(f *function, line string) error {
	if m := regLine.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[2]) // none: one register
		f.regs = append(f.regs, registers{m[1], n})
		return nil
	}
	if m := arrayLine.FindStringSubmatch(line); m != nil {
		align, _ := strconv.Atoi(m[2]) // the pattern has digits
		bytes, _ := strconv.Atoi(m[4])
		to := &f.shared
		if m[1] == "local" {
			to = &f.local
		}
		*to = append(*to, variable{m[3], align, bytes})
		return nil
	}
	if m := labelLine.FindStringSubmatch(line); m != nil {
		f.body = append(f.body, instruction{line: p.at, label: m[1]})
		return nil
	}
	if m := callLine.FindStringSubmatch(line); m != nil {
		return p.call(f)
	}
	m := opLine.FindStringSubmatch(line)
	if m == nil || !strings.HasSuffix(line, ";") {
		return p.wrong(line)
	}
	i := instruction{line: p.at, op: m[3], args: operands(m[4])}
	if m[2] != "" {
		i.guard = m[1] + m[2]
	}
	f.body = append(f.body, i)
	return nil
}

// call reads the function's name and the list of arguments, which are param0, param1, … in order.
func (p *parser) call(f *function) error {
	i := instruction{line: p.at, op: "call"}
	for {
		line, ok := p.next()
		if !ok {
			return fmt.Errorf("%s: the text ends", f.name)
		}
		if line == ");" {
			f.body = append(f.body, i)
			return nil
		}
		if name := strings.TrimSuffix(line, ","); name != "(" && len(i.args) == 0 {
			i.args = append(i.args, name)
		}
	}
}

// operands splits at commas outside of braces.
func operands(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(text[from:]); rest != "" {
		out = append(out, rest)
	}
	return out
}
