package table

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kind is what the values of a column are, as far as the file says it.
type kind int

const (
	anyText kind = iota // text that may be anything
	floats              // and decimals
	ints
	bools
	texts
	times
	lists // of numbers
	nulls // no value is there, and the writer knew no type
	other
)

func (k kind) numeric() bool { return k == floats || k == ints || k == bools }

// field is a column of a file.
type field struct {
	name string
	kind kind
	cell bool // of text that says what it likes, as in CSV: its values may be those of a slice
}

// part is what a column is to a Table.
type part int

const (
	ignored part = iota
	scoreList
	scoreColumn // one class, or the only score
	labelColumn
	labelList // one of K is 1; or the label alone
	labelHot  // one class
	timeColumn
	idColumn
	servedColumn
	weightColumn
	featureList
	featureColumn
	textColumn // model, version, slices
)

// role is a part, and of which class or feature.
type role struct {
	part part
	at   int
}

// meaning says what numbers are scores.
type meaning int

const (
	byValue meaning = iota
	asLogits
	asProbs
)

// columnPlan says what the columns of a file are.
type columnPlan struct {
	fields  []field
	options Options
	roles   []role

	means   meaning
	single  bool // one score a row
	list    bool
	k       int      // score columns; 0 with a list
	columns []string // of scores, by class
	classes []string // names of the classes; nil where they have none
	d       int
	labels  []string // columns of labels
	noLabel error    // what has a name of theirs and is none
	hot     bool
	time    string
	// What was taken by another name than that of docs/schema.md.
	notes []string
}

// planOf assigns the columns of a file.
func planOf(fields []field, o Options) (*columnPlan, error) {
	p := &columnPlan{fields: fields, options: o, roles: make([]role, len(fields)), classes: o.Classes}
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.name] && !isIndex(f.name) {
			return nil, fmt.Errorf("column %s occurs twice", quoteName(f.name))
		}
		seen[f.name] = true
	}
	// Columns that are named by a flag go before those that have to be found.
	if err := p.named(); err != nil {
		return nil, err
	}
	if err := p.scores(); err != nil {
		return nil, err
	}
	if err := p.label(); err != nil {
		return nil, err
	}
	p.one(timeColumn, timeNames, times, texts, ints, floats, anyText)
	p.one(idColumn, idNames, texts, ints, anyText)
	p.one(weightColumn, weightNames, floats, ints, anyText)
	p.one(servedColumn, []string{"served"}, floats, ints, anyText)
	if err := p.features(); err != nil {
		return nil, err
	}
	for i, f := range p.fields {
		versioned := (f.name == "version" || f.name == "model") && f.kind == ints
		text := f.kind == texts || f.kind == anyText || f.cell && f.kind != other && f.kind != lists
		if p.roles[i].part == ignored && !isIndex(f.name) && (text || versioned) {
			p.roles[i].part = textColumn
		}
	}
	return p, nil
}

// free is the column of that name, -1 where there is none or it has a role. The exact name goes before a folded one.
func (p *columnPlan) free(name string) int {
	folded := -1
	for i, f := range p.fields {
		switch {
		case p.roles[i].part != ignored || isIndex(f.name):
		case f.name == name:
			return i
		case folded < 0 && fold(f.name) == fold(name):
			folded = i
		}
	}
	return folded
}

func (p *columnPlan) names() []string {
	var out []string
	for _, f := range p.fields {
		if !isIndex(f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

// named assigns what flags name.
func (p *columnPlan) named() error {
	o := p.options
	if o.Logits != "" && o.Probs != "" {
		return fmt.Errorf("--logits and --prob: only one of them")
	}
	for flag, name := range map[string]string{"logits": o.Logits, "prob": o.Probs} {
		if name == "" {
			continue
		}
		p.means = map[string]meaning{"logits": asLogits, "prob": asProbs}[flag]
		if !p.scoresNamed(name) {
			return p.missing(flag, name)
		}
	}
	if name := o.Labels; name != "" && !isFile(name) {
		i := p.free(name)
		switch {
		case i >= 0:
			p.labelAt(i)
		case p.hotLabels(name, true):
		default:
			return p.missing("label", name)
		}
	}
	if o.Time != "" {
		i := p.free(o.Time)
		if i < 0 {
			return p.missing("ts", o.Time)
		}
		p.roles[i].part, p.time = timeColumn, p.fields[i].name
	}
	return nil
}

func (p *columnPlan) missing(flag, name string) error {
	return fmt.Errorf("--%s %s: no such column; there are: %s", flag, quoteName(name), quoteNames(p.names()))
}

// one assigns the first of the names that is there and of one of the kinds. The first name is that of docs/schema.md.
func (p *columnPlan) one(what part, names []string, kinds ...kind) {
	if slices.ContainsFunc(p.roles, func(r role) bool { return r.part == what }) {
		return
	}
	for _, name := range names {
		i := p.free(name)
		if i < 0 || name != names[0] && !slices.Contains(kinds, p.fields[i].kind) {
			continue
		}
		p.roles[i].part = what
		if what == timeColumn {
			p.time = p.fields[i].name
		}
		if p.fields[i].name != names[0] {
			p.note(names[0], p.fields[i].name)
		}
		return
	}
}

func (p *columnPlan) note(what string, columns ...string) {
	p.notes = append(p.notes, what+" from "+quoteNames(columns))
}

// features are a list, or columns features_0, features_1 and so on.
func (p *columnPlan) features() error {
	if i := p.free("features"); i >= 0 && p.fields[i].kind == lists {
		p.roles[i].part = featureList
		return nil
	}
	for i, f := range p.fields {
		d, ok := indexed(f.name, "features")
		if !ok || p.roles[i].part != ignored {
			continue
		}
		p.roles[i] = role{featureColumn, d}
		p.d = max(p.d, d+1)
	}
	have := make([]bool, min(p.d, len(p.fields)))
	for _, r := range p.roles {
		if r.part == featureColumn && r.at < len(have) {
			have[r.at] = true
		}
	}
	if i := slices.Index(have, false); i >= 0 || p.d > len(have) {
		return fmt.Errorf("column features_%d where features_%d is due", p.d-1, max(i, 0))
	}
	return nil
}

// scoresNamed assigns the scores that a flag names: columns with commas between, one column, or the beginning of
// several names.
func (p *columnPlan) scoresNamed(names string) bool {
	if i := p.free(names); i >= 0 {
		return p.scoreAt(i)
	}
	if p.family(names, true) {
		return true
	}
	var at []int
	for _, name := range strings.Split(names, ",") {
		i := p.free(strings.TrimSpace(name))
		if i < 0 {
			return false
		}
		at = append(at, i)
	}
	p.take(at)
	return len(at) > 1
}

// scoreAt takes one column for the scores.
func (p *columnPlan) scoreAt(i int) bool {
	f := p.fields[i]
	switch {
	case f.kind == lists:
		p.roles[i].part, p.list, p.columns = scoreList, true, []string{f.name}
	case f.kind.numeric() || f.kind == anyText || f.kind == texts:
		p.single = true
		p.take([]int{i})
	default:
		return false
	}
	return true
}

// take makes columns the scores, by class.
func (p *columnPlan) take(at []int) {
	for k, i := range at {
		p.roles[i] = role{scoreColumn, k}
		p.columns = append(p.columns, p.fields[i].name)
	}
	p.k = len(at)
}

// scores finds the columns of scores: those of docs/schema.md, then those that the classes name, then other names.
func (p *columnPlan) scores() error {
	if p.columns != nil {
		return nil
	}
	for _, form := range []struct {
		name  string
		means meaning
	}{{"logits", asLogits}, {"probs", asProbs}, {"logit", asLogits}, {"prob", asProbs}} {
		p.means = form.means
		if i := slices.IndexFunc(p.fields, func(f field) bool { return f.name == form.name }); i >= 0 {
			if p.roles[i].part == ignored && p.scoreAt(i) {
				return nil
			}
		}
		if ok, err := p.strict(form.name); ok || err != nil {
			return err
		}
	}
	if p.means = byValue; p.byClass("") {
		p.note("scores", p.columns...)
		return nil
	}
	for _, g := range []struct {
		names []string
		means meaning
		what  string
	}{{logitNames, asLogits, "logits"}, {probNames, asProbs, "probabilities"}, {scoreNames, byValue, "scores"}} {
		for _, name := range g.names {
			p.means = g.means
			i := p.free(name)
			if i >= 0 && p.scored(i) && p.scoreAt(i) || p.byClass(name) || p.family(name, false) {
				p.note(g.what, p.columns...)
				return nil
			}
		}
	}
	if p.means = byValue; p.numbers() {
		p.note("scores", p.columns...)
		return nil
	}
	return fmt.Errorf("no column logits, probs, logit or prob, nor logits_0 or probs_0, …, and none that --logits "+
		"or --prob names; there are: %s%s", quoteNames(p.names()), p.perhaps())
}

// perhaps names the flag of columns that could be scores.
func (p *columnPlan) perhaps() string {
	var vectors, numbers, nested []string
	for i, f := range p.fields {
		switch {
		case p.roles[i].part != ignored || isIndex(f.name):
		case f.kind == lists:
			vectors = append(vectors, f.name)
		case f.kind == floats:
			numbers = append(numbers, f.name)
		case f.kind == other:
			nested = append(nested, f.name)
		}
	}
	switch {
	case len(vectors) == 1:
		return "; perhaps --prob " + quoteName(vectors[0])
	case len(vectors) == 0 && len(numbers) > 0 && len(numbers) < 12:
		return "; perhaps --prob " + quoteName(strings.Join(numbers, ","))
	case len(vectors)+len(numbers) == 0 && len(nested) > 0:
		return "; " + quoteNames(nested) +
			": neither numbers nor lists of numbers; write a list of numbers a row, or a " +
			"column for each class"
	}
	return ""
}

// scored reports whether a column can be the scores. One that may be anything must not hold predicted classes.
func (p *columnPlan) scored(i int) bool {
	k := p.fields[i].kind
	return k == lists || k == floats || k == ints && p.means != byValue
}

// strict takes columns name_0, name_1, … without a gap.
func (p *columnPlan) strict(name string) (bool, error) {
	at := map[int]int{}
	for i, f := range p.fields {
		if k, ok := indexed(f.name, name); ok && p.roles[i].part == ignored {
			at[k] = i
		}
	}
	if _, ok := at[0]; !ok || len(at) == 0 {
		return false, nil
	}
	var columns []int
	for k := range len(at) {
		i, ok := at[k]
		if !ok {
			most := 0
			for k := range at {
				most = max(most, k)
			}
			return false, fmt.Errorf("column %s_%d where %s_%d is due", name, most, name, k)
		}
		columns = append(columns, i)
	}
	p.take(columns)
	return true, nil
}

// byClass takes the columns that the classes name, with name and a sign before them where name is not "".
func (p *columnPlan) byClass(name string) bool {
	var at []int
	for _, class := range p.classes {
		i := -1
		for j, f := range p.fields {
			s, ok := f.name, true
			if name != "" {
				s, ok = suffix(f.name, name)
			}
			if ok && s == class && p.roles[j].part == ignored && (f.kind.numeric() || f.kind == anyText) {
				i = j
			}
		}
		if i < 0 {
			return false
		}
		at = append(at, i)
	}
	if len(at) < 2 {
		return false
	}
	p.take(at)
	return true
}

// family takes all columns of numbers whose names are prefix and something: numbers in their order, or names, which
// are those of the classes. Of anything, where asked for.
func (p *columnPlan) family(prefix string, anything bool) bool {
	var at, numbers []int
	var names, figures []string
	for i, f := range p.fields {
		s, ok := suffix(f.name, prefix)
		fits := f.kind == floats || anything && (f.kind.numeric() || f.kind == anyText)
		if !ok || !fits || p.roles[i].part != ignored {
			continue
		}
		at, names = append(at, i), append(names, s)
		if number(s) {
			numbers, figures = append(numbers, i), append(figures, s)
		}
	}
	switch {
	case len(numbers) > 1: // others beside them are sums and maxima
		return p.ordered(numbers, figures, true)
	case len(at) < 2 || len(prefix) < 2: // p_value and p_other are no classes
		return false
	}
	return p.ordered(at, names, false)
}

// ordered takes columns by their numbers, or by their order in the file; the names become those of the classes.
func (p *columnPlan) ordered(at []int, names []string, numbered bool) bool {
	if p.classes != nil && len(p.classes) != len(at) {
		return false
	}
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	if numbered {
		slices.SortFunc(order, func(a, b int) int { return atoi(names[a]) - atoi(names[b]) })
	}
	columns, classes, plain := make([]int, len(at)), make([]string, len(at)), numbered
	for k, i := range order {
		columns[k], classes[k] = at[i], names[i]
		plain = plain && atoi(names[i]) == k
	}
	if numbered && !plain && atoi(classes[len(classes)-1])-atoi(classes[0]) != len(classes)-1 {
		return false // a gap
	}
	if !plain && p.classes == nil {
		p.classes = classes
	}
	p.take(columns)
	return true
}

// numbers takes columns 0, 1, …: a DataFrame of what predict_proba returns.
func (p *columnPlan) numbers() bool {
	var at []int
	var names []string
	for i, f := range p.fields {
		if number(f.name) && f.kind == floats && p.roles[i].part == ignored {
			at, names = append(at, i), append(names, f.name)
		}
	}
	return len(at) > 1 && p.ordered(at, names, true)
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// label finds the label.
func (p *columnPlan) label() error {
	if p.labels != nil || p.options.Labels != "" {
		return nil
	}
	for n, name := range labelNames {
		i := p.free(name)
		if i >= 0 && p.fields[i].kind != other && p.fields[i].kind != times {
			p.labelAt(i)
		} else if !p.hotLabels(name, n == 0) {
			if i >= 0 && p.noLabel == nil {
				p.noLabel = fmt.Errorf("column %s has another type: want whole numbers, booleans, text, or lists in "+
					"which one number is 1", quoteName(p.fields[i].name))
			}
			continue
		}
		if n > 0 || p.labels[0] != name {
			p.note("labels", p.labels...)
		}
		return nil
	}
	return nil
}

// left are the columns that are not read.
func (p *columnPlan) left() []string {
	var out []string
	for i, f := range p.fields {
		if p.roles[i].part == ignored && !isIndex(f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

func (p *columnPlan) labelAt(i int) {
	p.roles[i].part, p.labels = labelColumn, []string{p.fields[i].name}
	if p.fields[i].kind == lists {
		p.roles[i].part, p.hot = labelList, true
	}
}

// hotLabels takes columns name_0, name_1, … or those of the classes, one of which is 1; of floats only where the name
// says enough.
func (p *columnPlan) hotLabels(name string, sure bool) bool {
	numbered := make([]string, 0, len(p.fields))
	for k := range len(p.fields) {
		numbered = append(numbered, strconv.Itoa(k))
	}
	for _, want := range [][]string{p.classes, numbered} {
		var at []int
		for _, class := range want {
			i := slices.IndexFunc(p.fields, func(f field) bool {
				s, ok := suffix(f.name, name)
				return ok && s == class && (f.kind == ints || f.kind == bools || sure && f.kind != other)
			})
			if i < 0 || p.roles[i].part != ignored {
				break
			}
			at = append(at, i)
		}
		if len(at) < 2 || p.k > 1 && len(at) != p.k {
			continue
		}
		for k, i := range at {
			p.roles[i] = role{labelHot, k}
			p.labels = append(p.labels, p.fields[i].name)
		}
		p.hot = true
		return true
	}
	return false
}
