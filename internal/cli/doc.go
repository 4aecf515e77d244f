// Package cli is how commands speak to who calls them wrongly, in one voice and with the nearest name: errors of flags,
// arguments and subcommands, which cobra and pflag word themselves otherwise; the commands that every program has
// (help, completion), and its log. It knows no command of plumbline.
package cli
