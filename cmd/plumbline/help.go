package main

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed help/*.txt
var helpTexts embed.FS

// help is the long text of a command, help/NAME.txt, with args in the places of its verbs.
func help(name string, args ...any) string {
	text, err := helpTexts.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic("plumbline: no help for " + name)
	}
	return fmt.Sprintf(strings.TrimSuffix(string(text), "\n"), args...)
}
