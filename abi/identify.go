package abi

// IdentifySign begins the path of an ask that the host answers itself, with the ref of the actor at the rest of the path. No
// actor's path contains it.
const IdentifySign = "@"

// NoSuchActor is the answer, with an error, of an actor that is not there or that the asker may not
// send to.
const NoSuchActor = "no such actor"

// Identity is an actor that was found by a path with patterns.
type Identity struct {
	Ref  Ref
	Path string // such as /user/a, without the ref
}

// AppendIdentify appends an ask for the actor at a path; timeout is in nanoseconds.
func AppendIdentify(dst []byte, path string, correlation, timeout uint64) []byte {
	dst = appendHead(appendOp(dst, OpAsk), majorText, uint64(len(IdentifySign)+len(path)))
	dst = append(append(dst, IdentifySign...), path...)
	dst = appendHead(dst, majorUint, correlation)
	dst = appendHead(dst, majorUint, timeout)
	return appendHead(append(dst, nullByte), majorBytes, 0)
}

// mostCounted bounds how many actors an answer counts, so that it is an int everywhere.
const mostCounted = 1 << 30

// AppendIdentities appends the payload of the answer for a path with patterns: how many actors there
// are in all, and those that are listed.
func AppendIdentities(dst []byte, total int, listed []Identity) []byte {
	dst = appendHead(appendHead(dst, majorArray, 2), majorUint, uint64(min(total, mostCounted)))
	dst = appendHead(dst, majorArray, uint64(len(listed)))
	for i := range listed {
		dst = appendText(appendHead(appendHead(dst, majorArray, 2), majorUint, uint64(listed[i].Ref)), listed[i].Path)
	}
	return dst
}

// IdentitySize is how many bytes AppendIdentities appends, at most, for an actor whose path has n
// bytes. IdentitiesHead is added once for the whole answer.
func IdentitySize(n int) int { return 1 + 9 + 3 + n }

// IdentitiesHead is the space that AppendIdentities needs in addition to IdentitySize, in bytes.
const IdentitiesHead = 1 + 9 + 3

// DecodeIdentities reads what AppendIdentities writes.
func DecodeIdentities(payload []byte) (listed []Identity, total int, err error) {
	r := NewReader(payload)
	n := r.Array()
	count := r.Uint()
	switch {
	case r.OK() && n != 2:
		r.Fail(ErrArity)
	case r.OK() && count > mostCounted:
		r.Fail(ErrRange)
	}
	m := r.Array()
	if r.OK() && (m > MaxIdentities || uint64(m) > count) {
		r.Fail(ErrRange)
	}
	for i := 0; i < m && r.OK(); i++ {
		if n := r.Array(); r.OK() && n != 2 {
			r.Fail(ErrArity)
		}
		one := Identity{Ref: Ref(r.Uint()), Path: r.Text()}
		if r.OK() && (one.Ref == 0 || one.Path == "" || len(one.Path) > MaxPath) {
			r.Fail(ErrRange)
		}
		listed = append(listed, one)
	}
	if err := r.Done(); err != nil {
		return nil, 0, err
	}
	return listed, int(count), nil
}
