// Package config is plumbline's configuration: one YAML file, decoded strictly over defaults.
//
// The structs of the sections are the only source of their keys. Their comments and tags give meaning, default and
// limits. Package setting derives the checks, the commented example, the JSON Schema and docs/config.md from them. This
// package adds what concerns the whole file: the names of the sections, conditions between sections (cross.go), and the
// decoder (parse.go, decode.go). A new key is a field of the struct of its section, with its comment and tags; go test
// ./internal/config -update writes docs/config.md. The decoder continues after a problem and reports all problems with
// line and column.
//
// The file contains no secrets. It names the environment variables and files that hold them (package setting). A value
// may have ${NAME} or ${NAME:-default} in it (environment.go).
//
// The package knows the keys and their allowed values. It does not know what a key does: each component takes its own
// section.
package config
