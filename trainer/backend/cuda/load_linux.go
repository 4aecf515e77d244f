//go:build linux && (amd64 || arm64) && !static

package cuda

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ebitengine/purego"
)

// open loads the first library that there is.
func open(names []string) (handle uintptr, name string, err error) {
	for _, name = range names {
		var failed error
		if handle, failed = purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL); failed == nil {
			return handle, name, nil
		}
		if err == nil {
			err = failed
		}
	}
	return 0, "", fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
}

// bind sets the fields of table, a pointer to a struct of functions, to those of the library.
func bind(handle uintptr, table any) error {
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("c"), ",")
		at, err := purego.Dlsym(handle, name)
		if err != nil {
			if option == "optional" {
				continue
			}
			return fmt.Errorf("no function %s: %w", name, err)
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), at)
	}
	return nil
}
