package section

import (
	"fmt"
	"os"
	"strings"
)

// Replace puts text between the marks of a section of a file, each on a line of its own:
//
//	<!-- begin name -->
//	text
//	<!-- end name -->
//
// text ends in a newline or is empty. A file without the marks is an error.
func Replace(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no section %q", path, name)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o600)
}
