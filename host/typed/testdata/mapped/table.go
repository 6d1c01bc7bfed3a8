package mapped

import (
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
)

// ReadByTable reads by the table alone, and reports whether that was possible.
func (m *Usual) ReadByTable(r *abi.Reader) bool {
	how := abi.ReadStruct(r, unsafe.Pointer(m), &placesOf_Usual[0])
	return r.ReadStructAgain(unsafe.Pointer(m), &placesOf_Usual[0], how) == abi.ReadAll
}

// WriteByTable writes by the table alone, and reports whether that was possible.
func (m *Usual) WriteByTable(w *abi.Writer) bool {
	return abi.WriteStruct(w, unsafe.Pointer(m), &placesOf_Usual[0])
}
