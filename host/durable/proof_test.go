package durable

import (
	"fmt"

	"github.com/wasmactors/wasmactors/host/internal/saved"
)

// In all tests every second checkpoint that has the parts of some actors compares those of all others, byte by byte: nothing has changed that no
// record has said. It is a panic, as many tests do not look at checkpoints.
func init() {
	proof = func(path string, part, now []byte) {
		text := func(b []byte) string {
			s, err := saved.Decode(b)
			if err != nil {
				return err.Error()
			}
			guest := len(s.Guest)
			s.Guest = nil
			return fmt.Sprintf("%+v %+v, guest %d bytes", *s, *s.Whole, guest)
		}
		panic(fmt.Sprintf("%s has changed, and no record says so:\n%s\n%s", path, text(part), text(now)))
	}
}
