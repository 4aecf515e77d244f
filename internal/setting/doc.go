// Package setting makes a configuration out of Go structs. A component declares a struct with its keys; the comment
// and the tags of each field are the only source of the key's meaning, default and limits. Defaults, checks, the
// reference page, the JSON Schema and the commented example are derived from them.
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
//	// Source is the file with the comments that document the keys.
//	func (Config) Source() string { return configSource }
//
// The tags are:
//
//	yaml      the key, lower_snake_case; required
//	default   in the notation of the file; lists by commas. Without it the default is zero. Bytes may have the unit
//	          KiB to PiB, numbers may have underscores
//	min, max  bounds of a number or duration, both included. A number needs them; a duration has 0 and 366 days
//	above     bound of a number, itself excluded; in place of min
//	enum      what a text may be: a|b|c. A list that code knows comes from the method Choices in its place
//	format    what a text must look like: name, topic, url, address, listen, label
//	required  "true": a text must not be empty, a list must have an item
//	blank     "true": the items of a list of texts may be empty
//
// On a list of texts or numbers, default and required are about the list, the other tags are about its items. A field
// may be a bool, int, int64, float64, string, time.Duration, a struct of such fields, or a list of any of these but
// lists.
//
// A condition between keys is the method Check(*Report) of the struct; conditions between components belong to
// whoever composes them.
//
// A secret does not stand in the configuration: a key names the environment variable or the file that holds it, and
// FromEnv and FromFile read it.
//
// The package knows nothing of plumbline and of YAML: internal/config decodes the file into the structs.
package setting
