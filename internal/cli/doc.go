// Package cli is how commands speak to who calls them wrongly, in one voice and with the nearest name: errors of flags,
// arguments and subcommands, which cobra and pflag word themselves otherwise, and the commands that every program has
// (help, completion). It knows no command of plumbline.
package cli
