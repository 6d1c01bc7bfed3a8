package abi

import "strconv"

// Error is a violation of the encoding. Decoders return one of the sentinels
// below, so refusing costs no allocation; the offset is the n that they return.
type Error struct{ Reason string }

func (e *Error) Error() string { return "abi: " + e.Reason }

// What decoders refuse.
var (
	ErrTruncated   = &Error{"the data ends within an item"}
	ErrNotShortest = &Error{"a number or length is not in its shortest form"}
	ErrIndefinite  = &Error{"indefinite lengths are not allowed"}
	ErrReserved    = &Error{"a reserved head"}
	ErrSimple      = &Error{"a simple value other than false, true and null"}
	ErrTag         = &Error{"a tag where none is allowed"}
	ErrNesting     = &Error{"nested too deeply"}
	ErrUTF8        = &Error{"text is not UTF-8"}
	ErrType        = &Error{"an item of another type was expected"}
	ErrRange       = &Error{"a number is out of range"}
	ErrTooLong     = &Error{"too long"}
	ErrDuplicate   = &Error{"a map has a key twice"}
	ErrTrailing    = &Error{"data after the item"}
	ErrArity       = &Error{"wrong number of elements"}
	ErrKind        = &Error{"unknown kind of envelope"}
	ErrKindLater   = &Error{"a kind of envelope that is reserved for later"}
	ErrOp          = &Error{"unknown operation"}
	ErrOpLater     = &Error{"an operation that is reserved for later"}
	ErrRef         = &Error{"a ref must not be 0"}
	ErrPath        = &Error{"a path must not be empty"}
	ErrTypeName    = &Error{"not a valid type name"}
	ErrFlags       = &Error{"unknown flags"}
	ErrCorrelation = &Error{"a correlation must not be 0 here"}
	ErrFeature     = &Error{"not a valid name of a feature"}
	ErrServiceName = &Error{"not a valid name of a service"}
	ErrMissing     = &Error{"a required key is missing"}
	ErrUnknownKey  = &Error{"a key that the type does not have"}
	ErrUnknownKeys = &Error{"more unknown keys than are kept"}
	ErrMessageType = &Error{"a message of another type or version"}
)

// At is an error with the offset where it was found.
type At struct {
	Offset int    // bytes from the start of the input
	Where  string // the type and field that were being read, if known
	Err    *Error
	Found  Type // what was there, if Err is ErrType
}

func (e *At) Error() string {
	text := "abi: "
	if e.Where != "" {
		text += e.Where + ": "
	}
	text += e.Err.Reason
	if e.Found != TypeInvalid {
		text += ", this is " + e.Found.String() + ","
	}
	return text + " at offset " + strconv.Itoa(e.Offset)
}

// Unwrap is the sentinel.
func (e *At) Unwrap() error { return e.Err }
