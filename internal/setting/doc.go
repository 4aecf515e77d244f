// Package setting derives a configuration from Go structs. A component declares a struct with its keys. The comment and
// the tags of each field are the only source of the key's meaning, default and limits. The package derives the
// defaults, the checks, the reference page, the JSON Schema and the commented example from them.
//
//	// Config is when calibrators are refitted.
//	type Config struct {
//		// Sampled rows since the start of the alarm that a refit on alarm waits for; at most max_rows.
//		FreshRows int `yaml:"fresh_rows" default:"1000" min:"0" max:"10_000_000"`
//	}
//
//	//go:embed config.go
//	var configSource string
//
//	// Declaration is the file with the comments that document the keys.
//	func (Config) Declaration() string { return configSource }
//
// The tags are:
//
//	yaml      the key in lower_snake_case; required
//	default   the default, as in the file; list items separated by commas. Without it the default is zero. Bytes may
//	          have a unit from KiB to PiB, numbers may have underscores
//	min, max  bounds of a number or duration, both included. A number needs them; a duration has 0 and 366 days
//	above     lower bound of a number, not included; used instead of min
//	enum      allowed values of a text: a|b|c. If only the code knows them, the method Choices returns them instead
//	format    form of a text: name, topic, url, address, listen, label
//	required  "true": a text must not be empty, a list must have an item
//	blank     "true": the items of a list of texts may be empty
//
// On a list of texts or numbers, default and required concern the list, and the other tags concern its items. A field
// may be a bool, int, int64, float64, string, time.Duration, a struct of such fields, or a list of any of these except
// lists.
//
// A condition between keys goes into the method Check(*Report) of the struct. Whoever composes components checks
// conditions between them.
//
// The configuration contains no secrets. A key names the environment variable or the file that holds a secret; FromEnv
// and FromFile read it.
//
// The package knows nothing about plumbline or YAML. Package internal/config decodes the file into the structs.
package setting
