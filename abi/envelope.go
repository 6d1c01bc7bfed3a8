package abi

// Envelope is what the host puts into a guest's inbox: one turn.
type Envelope struct {
	Kind        Kind
	Time        int64  // the turn's clock, nanoseconds since 1970 UTC
	Sender      Ref    // 0: nobody
	Correlation uint64 // 0: none
	Headers     []byte // an encoded map of text to text, nil: none
	Payload     []byte // CBOR, as the byte string's contents
}

// AppendEnvelope appends the encoding of e.
func AppendEnvelope(dst []byte, e *Envelope) []byte {
	dst = append(dst, majorArray<<5|6, byte(e.Kind))
	dst = appendInt(dst, e.Time)
	dst = appendHead(dst, majorUint, uint64(e.Sender))
	dst = appendHead(dst, majorUint, e.Correlation)
	dst = appendRaw(dst, e.Headers)
	return appendBytes(dst, e.Payload)
}

// EnvelopeSize is the length of what AppendEnvelope appends.
func EnvelopeSize(e *Envelope) int {
	t := e.Time
	if t < 0 {
		t = -1 - t
	}
	return 2 + headSize(uint64(t)) + headSize(uint64(e.Sender)) + headSize(e.Correlation) +
		max(1, len(e.Headers)) + headSize(uint64(len(e.Payload))) + len(e.Payload)
}

// PutEnvelope writes e at the start of dst and returns its length; ok is false,
// and dst untouched, if it does not fit. It does not allocate.
func PutEnvelope(dst []byte, e *Envelope) (n int, ok bool) {
	n = EnvelopeSize(e)
	if n > len(dst) {
		return 0, false
	}
	AppendEnvelope(dst[:0:n], e)
	return n, true
}

// DecodeEnvelope reads the envelope at the start of src and returns its length.
// What e refers to aliases src. On an error n is the offset of what is wrong. It
// does not allocate.
func DecodeEnvelope(e *Envelope, src []byte) (n int, err error) {
	n, bad := decodeEnvelope(e, src)
	if bad != nil {
		return n, bad
	}
	return n, nil
}

func decodeEnvelope(e *Envelope, b []byte) (int, *Error) {
	at, err := readArray(b, 0, 6)
	if err != nil {
		return at, err
	}
	var v uint64
	start := at
	if v, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if v > uint64(maxKind) {
		return start, ErrKind
	}
	e.Kind = Kind(v)
	if e.Time, at, err = readInt(b, at); err != nil {
		return at, err
	}
	if v, at, err = readUint(b, at); err != nil {
		return at, err
	}
	e.Sender = Ref(v)
	if e.Correlation, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if e.Headers, at, err = readHeaders(b, at); err != nil {
		return at, err
	}
	e.Payload, at, err = readString(b, at, majorBytes, len(b))
	return at, err
}
