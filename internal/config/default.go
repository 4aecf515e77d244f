package config

import (
	_ "embed"
	"slices"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/window"
)

// Default returns the configuration of an empty file. Example writes the same with comments.
func Default() Config {
	c := setting.Default[Config]()
	c.Windows = []window.Config{
		{Name: "10m", Kind: window.KindTime, Size: 10 * time.Minute, Slide: time.Minute},
		{Name: "day", Kind: window.KindTime, Size: 24 * time.Hour, Slide: 24 * time.Hour},
		{Name: "last5000", Kind: window.KindRows, Rows: 5000},
	}
	first := setting.Default[rule.Config]()
	first.Name = "excess-ece"
	c.Rules = []rule.Config{first}
	return c
}

// Example returns a configuration file with a comment on every key. It parses to Default().
func Example() []byte {
	const head = "# plumbline configuration: every key with its default. Keys that are left out keep their default.\n" +
		"# Durations have units: 500ms, 10s, 5m, 1h30m. Check a file: plumbline config check FILE\n"
	return append([]byte(head), setting.Example(Default())...)
}

// Schema returns the JSON Schema of the configuration file, for editors. It does not contain conditions between keys.
func Schema() []byte { return setting.Schema(Default(), "plumbline configuration") }

//go:embed page.txt
var pageHead []byte

// Page returns docs/config.md: every key with its default, its range and its meaning.
func Page() []byte { return append(slices.Clone(pageHead), setting.Page(Default())...) }
