package config

import (
	_ "embed"
	"slices"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

// Default returns the configuration that an empty file gives. Example writes it out with its comments.
func Default() Config {
	c := setting.Default[Config]()
	c.Windows = []Window{
		{Name: "10m", Kind: KindTime, Size: 10 * time.Minute, Slide: time.Minute},
		{Name: "day", Kind: KindTime, Size: 24 * time.Hour, Slide: 24 * time.Hour},
		{Name: "last5000", Kind: KindRows, Rows: 5000},
	}
	rule := setting.Default[Rule]()
	rule.Name = "excess-ece"
	c.Rules = []Rule{rule}
	return c
}

// Example is a configuration file with a comment on every key; it parses to Default().
func Example() []byte {
	const head = "# plumbline configuration: every key with its default. Keys that are left out keep their default.\n" +
		"# Durations have units: 500ms, 10s, 5m, 1h30m. Check a file: plumbline config check FILE\n"
	return append([]byte(head), setting.Example(Default())...)
}

// Schema is the JSON Schema of the configuration file, for editors. Conditions between keys are not in it.
func Schema() []byte { return setting.Schema(Default(), "plumbline configuration") }

//go:embed page.md
var pageHead []byte

// Page is docs/config.md: every key with its default, its range and its meaning.
func Page() []byte { return append(slices.Clone(pageHead), setting.Page(Default())...) }
