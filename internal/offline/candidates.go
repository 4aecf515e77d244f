package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/nearest"
)

// Choice is what the flags --method, --skip and --loss-scaling of plumbline fit ask for.
type Choice struct{ Method, Skip, LossScaling string }

// unknownMethod is the error of a name of a flag that no method has. It says which names are near or contain it, else
// all.
func unknownMethod(flag, name string) error {
	names := MethodNames()
	base, scaled := strings.CutSuffix(name, calibrator.Suffix)
	if scaled && slices.Contains(names, base) {
		return fmt.Errorf("--%s %s: class-wise loss scaling is for %s", flag, name, strings.Join(ScalableNames(), ", "))
	}
	var near []string
	if best := nearest.Of(base, names); best != "" {
		near = append(near, best)
	}
	for _, s := range names {
		if len(base) > 2 && strings.Contains(s, base) && !slices.Contains(near, s) {
			near = append(near, s)
		}
	}
	if len(near) > 0 {
		return fmt.Errorf("--%s %q: unknown method; did you mean %s?", flag, name, strings.Join(near, ", "))
	}
	if flag == "method" {
		names = append([]string{"all"}, names...)
	}
	return fmt.Errorf("--%s %q: unknown method, allowed are %s", flag, name, strings.Join(names, ", "))
}

// Candidates are the methods that are asked for, in their order, each once.
func (c Choice) Candidates() ([]string, error) {
	if c.LossScaling != "off" && c.LossScaling != "on" && c.LossScaling != "both" {
		return nil, fmt.Errorf("--loss-scaling %q: allowed are off, on and both", c.LossScaling)
	}
	asked, err := c.asked()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range asked {
		forms, err := c.forms(name, len(asked) > 1)
		if err != nil {
			return nil, err
		}
		for _, form := range forms {
			if !slices.Contains(names, form) {
				names = append(names, form)
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("--skip %s: no method is left", c.Skip)
	}
	return names, nil
}

// asked are the names of --method without those of --skip.
func (c Choice) asked() ([]string, error) {
	all := c.Method == "all"
	asked := strings.Split(c.Method, ",")
	if all {
		asked = MethodNames()
	}
	if c.Skip == "" {
		return asked, nil
	}
	if !all {
		return nil, fmt.Errorf("--skip: needs --method all")
	}
	for name := range strings.SplitSeq(c.Skip, ",") {
		if name == "all" {
			return nil, fmt.Errorf("--skip %s: no method is left", c.Skip)
		}
		if !slices.Contains(asked, name) {
			return nil, unknownMethod("skip", name)
		}
		asked = slices.DeleteFunc(asked, func(s string) bool { return s == name })
	}
	return asked, nil
}

// forms are a method as it is, with class-wise loss scaling, or both. One of several is left as it is where it cannot
// be scaled.
func (c Choice) forms(name string, several bool) ([]string, error) {
	m, err := calibrator.Lookup(name)
	scaled := name + calibrator.Suffix
	switch {
	case err != nil:
		return nil, unknownMethod("method", name)
	case strings.HasSuffix(name, calibrator.Suffix) || c.LossScaling == "off" || !m.Scalable && several:
		return []string{name}, nil
	case !m.Scalable:
		return nil, fmt.Errorf("--loss-scaling %s: not for %s, allowed are %s", c.LossScaling, name,
			strings.Join(ScalableNames(), ", "))
	case c.LossScaling == "both":
		return []string{name, scaled}, nil
	}
	return []string{scaled}, nil
}

// MethodNames are the names of all methods, without those that are scaled.
func MethodNames() (names []string) {
	for _, m := range calibrator.Methods() {
		names = append(names, m.Name)
	}
	return names
}

// ScalableNames are those of the methods that class-wise loss scaling can wrap.
func ScalableNames() (names []string) {
	for _, m := range calibrator.Methods() {
		if m.Scalable {
			names = append(names, m.Name)
		}
	}
	return names
}
