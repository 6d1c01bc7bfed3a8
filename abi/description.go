package abi

// Description is what a module says of itself, in the custom section
// "wasmactors" or through its control block.
type Description struct {
	ABI   uint64   // the version of the contract
	SDK   string   // such as "wasmactors-go/0.1.0"
	Types []string // 1 to MaxTypes, in order of registration
}

// Section is the name of the custom section that may hold the description.
const Section = "wasmactors"

// AppendDescription appends the encoding of d.
func AppendDescription(dst []byte, d *Description) []byte {
	dst = appendHead(dst, majorMap, 3)
	dst = appendHead(appendText(dst, "abi"), majorUint, d.ABI)
	dst = appendText(appendText(dst, "sdk"), d.SDK)
	dst = appendHead(appendText(dst, "types"), majorArray, uint64(len(d.Types)))
	for _, t := range d.Types {
		dst = appendText(dst, t)
	}
	return dst
}

var descriptionKeys = []string{"abi", "sdk", "types"}

// DecodeDescription reads exactly one description. Unknown keys are stepped
// over. Types must be valid, different names. The error is an *At.
func DecodeDescription(d *Description, src []byte) error {
	*d = Description{}
	r := NewReader(src)
	seen := decodeMap(r, descriptionKeys, func(key int) {
		switch key {
		case 0:
			d.ABI = r.Uint()
		case 1:
			d.SDK = r.Text()
			if len(d.SDK) > MaxName {
				r.Fail(ErrTooLong)
			}
		case 2:
			d.Types = readTypes(r)
		}
	})
	if seen != 1<<3-1 {
		r.Fail(ErrMissing)
	}
	return r.Done()
}

func readTypes(r *Reader) []string {
	n := r.Array()
	if r.err == nil && (n == 0 || n > MaxTypes) {
		r.Fail(ErrRange)
	}
	var types []string
	for range n {
		at := r.at
		name := r.TextBytes()
		if r.err == nil && !ValidTypeName(name) {
			r.at, r.err = at, ErrTypeName
		}
		for _, t := range types {
			if t == string(name) && r.err == nil {
				r.at, r.err = at, ErrDuplicate
			}
		}
		if r.err != nil {
			return nil
		}
		types = append(types, string(name))
	}
	return types
}

// Has reports whether the module has an actor type of this name.
func (d *Description) Has(typ string) bool {
	for _, t := range d.Types {
		if t == typ {
			return true
		}
	}
	return false
}
