// Command release makes what goes beside the binaries of a release: SBOM, man pages, the module's zip.
//
//	release sbom BINARY > sbom.cdx.json
//	release man TITLE SECTION VERSION < page.md > page.1
//	release modzip DIR VERSION PROXY
//
// It is a module of its own, so that its libraries are none of the program's.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	const usage = "release sbom BINARY, release man TITLE SECTION VERSION, or release modzip DIR VERSION PROXY"
	switch {
	case len(args) == 2 && args[0] == "sbom":
		return writeBOM(args[1], os.Stdout)
	case len(args) == 4 && args[0] == "man":
		return writeMan(args[1], args[2], args[3])
	case len(args) == 4 && args[0] == "modzip":
		return writeModule(args[1], args[2], args[3])
	}
	return fmt.Errorf("usage: %s", usage)
}

// writeMan turns a page of the documentation into a manual page.
func writeMan(title, section, version string) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("%% %s(%s) %s\n\n# NAME\n%s - plumbline, streaming calibration\n\n",
		strings.ToUpper(title), section, version, title)
	_, body, _ := strings.Cut(string(text), "\n")
	_, err = os.Stdout.Write(md2man.Render([]byte(head + body)))
	return err
}
