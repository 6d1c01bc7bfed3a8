package abi

// Envelope is what the host puts into a guest's inbox: one turn.
type Envelope struct {
	Kind        Kind
	Time        int64  // the turn's clock, nanoseconds since 1970 UTC
	Sender      Ref    // 0: none
	Correlation uint64 // 0: none
	Headers     []byte // an encoded map of text to text, nil: none
	Payload     []byte // CBOR, as the byte string's contents

	// Apart is the length of a payload that is too large for the inbox, in bytes: the envelope has it
	// instead of the payload, and the guest fetches what it wants of the payload within the turn. 0: the payload
	// is here. A guest gets it only if it needs FeatureLarge.
	Apart uint64

	// Two that are reserved for later; 0 means none and takes no room. A guest
	// gets them only if it needs the feature.
	Sequence uint64 // of the sender's messages to this actor, from 1
	Position uint64 // of the envelope in the actor's log, from 1
}

// AppendEnvelope appends the encoding of e.
func AppendEnvelope(dst []byte, e *Envelope) []byte {
	dst = append(dst, majorArray<<5|byte(e.arity()), byte(e.Kind))
	dst = appendInt(dst, e.Time)
	dst = appendHead(dst, majorUint, uint64(e.Sender))
	dst = appendHead(dst, majorUint, e.Correlation)
	dst = appendRaw(dst, e.Headers)
	if e.Apart != 0 {
		dst = appendHead(dst, majorUint, e.Apart)
	} else {
		dst = appendBytes(dst, e.Payload)
	}
	if n := e.arity(); n > envelopeItems {
		dst = appendHead(dst, majorUint, e.Sequence)
		if n > envelopeItems+1 {
			dst = appendHead(dst, majorUint, e.Position)
		}
	}
	return dst
}

// envelopeItems is how many items every envelope has.
const envelopeItems = 6

func (e *Envelope) arity() int {
	switch {
	case e.Position != 0:
		return envelopeItems + 2
	case e.Sequence != 0:
		return envelopeItems + 1
	}
	return envelopeItems
}

// EnvelopeSize is the length of what AppendEnvelope appends.
func EnvelopeSize(e *Envelope) int {
	t := e.Time
	if t < 0 {
		t = -1 - t
	}
	n := 2 + headSize(uint64(t)) + headSize(uint64(e.Sender)) + headSize(e.Correlation) +
		max(1, len(e.Headers))
	if e.Apart != 0 {
		n += headSize(e.Apart)
	} else {
		n += headSize(uint64(len(e.Payload))) + len(e.Payload)
	}
	if items := e.arity(); items > envelopeItems {
		n += headSize(e.Sequence)
		if items > envelopeItems+1 {
			n += headSize(e.Position)
		}
	}
	return n
}

// PutEnvelope writes e at the start of dst and returns its length; ok is false,
// and dst untouched, if it does not fit. It does not allocate.
func PutEnvelope(dst []byte, e *Envelope) (n int, ok bool) {
	if n = e.putUsual(dst); n > 0 {
		return n, true
	}
	n = EnvelopeSize(e)
	if n > len(dst) {
		return 0, false
	}
	AppendEnvelope(dst[:0:n], e)
	return n, true
}

// putUsual writes what nearly all envelopes are: from an actor, with a small
// correlation, no headers and a short payload. It returns 0, and writes nothing,
// for everything else.
func (e *Envelope) putUsual(dst []byte) int {
	const fixed = 2 + 9 + 9 + 3
	size := len(e.Payload)
	if e.Time>>32 <= 0 || e.Sender>>32 == 0 || e.Correlation >= 24 || len(e.Headers) > 0 || size >= 24 || size > len(dst)-fixed || e.Sequence|e.Position|e.Apart != 0 {
		return 0
	}
	dst = dst[:fixed+size]
	dst[0], dst[1] = majorArray<<5|6, byte(e.Kind)
	dst[2] = majorUint<<5 | 27
	putBinary8(dst[3:11], uint64(e.Time))
	dst[11] = majorUint<<5 | 27
	putBinary8(dst[12:20], uint64(e.Sender))
	dst[20], dst[21], dst[22] = byte(e.Correlation), nullByte, majorBytes<<5|byte(size)
	copy(dst[fixed:], e.Payload)
	return fixed + size
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
	items, at, err := readEnvelopeHead(b)
	if err != nil {
		return at, err
	}
	var v uint64
	start := at
	if v, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if v > uint64(maxKind) {
		if v <= reservedKind {
			return start, ErrKindLater
		}
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
	e.Sequence, e.Position, e.Apart = 0, 0, 0
	if at < len(b) && b[at] < majorNint<<5 {
		start = at
		if e.Apart, at, err = readUint(b, at); err == nil && e.Apart == 0 {
			return start, ErrRange
		}
		e.Payload = nil
	} else {
		e.Payload, at, err = readBytes(b, at)
	}
	if err != nil || items == envelopeItems {
		return at, err
	}
	start = at
	if e.Sequence, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if items == envelopeItems+1 {
		if e.Sequence == 0 {
			return start, ErrRange
		}
		return at, nil
	}
	start = at
	if e.Position, at, err = readUint(b, at); err == nil && e.Position == 0 {
		return start, ErrRange
	}
	return at, err
}

// readEnvelopeHead reads the array's head: 6 to 8 items.
func readEnvelopeHead(b []byte) (items, at int, err *Error) {
	m, n, at, err := head(b, 0)
	switch {
	case err != nil:
		return 0, at, err
	case m != majorArray:
		return 0, 0, ErrType
	case n < envelopeItems || n > envelopeItems+2:
		return 0, 0, ErrArity
	}
	return int(n), at, nil
}
