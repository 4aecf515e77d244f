package cuda

import (
	"fmt"
	"unsafe"

	"github.com/plumbline/plumbline/trainer/backend"
)

// result is CUresult, status is cublasStatus_t; 0 is success.
type (
	result int32
	status int32
)

// DriverError is a failed call of the driver. Those of Open wrap backend.ErrUnsupported as well: without the device,
// another backend can do.
type DriverError struct {
	// What was attempted, the driver's name of the error, its explanation.
	What, Name, Text string
}

func (e *DriverError) Error() string { return fmt.Sprintf("cuda: %s: %s (%s)", e.What, e.Name, e.Text) }

// check makes an error of a result.
func (d *driver) check(what string, r result) error {
	if r == 0 {
		return nil
	}
	var name, text *byte
	e := &DriverError{What: what, Name: fmt.Sprintf("error %d", r), Text: "no explanation"}
	if d.ErrorName(r, &name) == 0 && name != nil {
		e.Name = cString(name)
	}
	if d.ErrorString(r, &text) == 0 && text != nil {
		e.Text = cString(text)
	}
	return e
}

// cString copies a string that ends in 0.
func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("cuda: "+format+": %w", append(args, backend.ErrUnsupported)...)
}
