// Package config is plumbline's configuration: one YAML file, decoded strictly over defaults.
//
// The structs of the sections are the only source of their keys: comments and tags give meaning, default and limits,
// and package setting derives from them the checks, the commented example, the JSON Schema and docs/config.md. What
// this package adds is the whole file: the sections under their names, conditions between them (cross.go), and the
// decoding (parse.go, decode.go), which goes on after a problem and reports all of them with line and column.
//
// Secrets do not stand in the file. It names environment variables and files that hold them (secret.go).
//
// The package knows keys and what they may be. It does not know what they do: a component takes its section as it is.
package config
