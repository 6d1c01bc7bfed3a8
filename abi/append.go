package abi

// The functions of this file append one command each. A target is a ref, or a
// path where the ref is 0. They do not check what the decoder checks.

func appendOp(dst []byte, op Op) []byte {
	return append(dst, majorArray<<5|byte(arity[op]), byte(op))
}

// AppendUint appends an unsigned integer.
func AppendUint(dst []byte, v uint64) []byte { return appendHead(dst, majorUint, v) }

// AppendBytesHead appends the head of a byte string of n bytes.
func AppendBytesHead(dst []byte, n int) []byte { return appendHead(dst, majorBytes, uint64(n)) }

func appendTarget(dst []byte, ref Ref, path string) []byte {
	if ref == 0 {
		return appendText(dst, path)
	}
	return appendHead(dst, majorUint, uint64(ref))
}

// AppendSend appends a send. Headers is an encoded map or nil.
func AppendSend(dst []byte, to Ref, path string, correlation, flags uint64, headers, payload []byte) []byte {
	dst = appendTarget(appendOp(dst, OpSend), to, path)
	dst = appendHead(dst, majorUint, correlation)
	dst = appendHead(dst, majorUint, flags)
	return appendBytes(appendRaw(dst, headers), payload)
}

// AppendForward appends a forward of the current envelope.
func AppendForward(dst []byte, to Ref, path string) []byte {
	return appendTarget(appendOp(dst, OpForward), to, path)
}

// AppendAsk appends an ask; timeout is in nanoseconds.
func AppendAsk(dst []byte, to Ref, path string, correlation, timeout uint64, headers, payload []byte) []byte {
	dst = appendTarget(appendOp(dst, OpAsk), to, path)
	dst = appendHead(dst, majorUint, correlation)
	dst = appendHead(dst, majorUint, timeout)
	return appendBytes(appendRaw(dst, headers), payload)
}

// AppendSpawn appends a spawn; the host chooses a name where name is empty.
// Options is an encoded map or nil.
func AppendSpawn(dst []byte, ref Ref, typ, name string, args, options []byte) []byte {
	dst = appendHead(appendOp(dst, OpSpawn), majorUint, uint64(ref))
	dst = appendText(dst, typ)
	if name == "" {
		dst = append(dst, nullByte)
	} else {
		dst = appendText(dst, name)
	}
	return appendRaw(appendBytes(dst, args), options)
}

// AppendStop appends a stop.
func AppendStop(dst []byte, to Ref, path string) []byte {
	return appendTarget(appendOp(dst, OpStop), to, path)
}

// AppendWatch appends a watch.
func AppendWatch(dst []byte, to Ref, path string) []byte {
	return appendTarget(appendOp(dst, OpWatch), to, path)
}

// AppendUnwatch appends an unwatch.
func AppendUnwatch(dst []byte, to Ref, path string) []byte {
	return appendTarget(appendOp(dst, OpUnwatch), to, path)
}

// AppendTimer appends a timer; delay and period are in nanoseconds, period 0
// means once.
func AppendTimer(dst []byte, key, delay, period uint64, payload []byte) []byte {
	dst = appendHead(appendOp(dst, OpTimer), majorUint, key)
	dst = appendHead(dst, majorUint, delay)
	dst = appendHead(dst, majorUint, period)
	return appendBytes(dst, payload)
}

// AppendCancel appends the cancellation of a timer.
func AppendCancel(dst []byte, key uint64) []byte {
	return appendHead(appendOp(dst, OpCancel), majorUint, key)
}

// AppendReceiveTimeout appends the setting of the receive timeout, in
// nanoseconds; 0 turns it off.
func AppendReceiveTimeout(dst []byte, timeout uint64) []byte {
	return appendHead(appendOp(dst, OpReceiveTimeout), majorUint, timeout)
}

// AppendStash appends a stash of the current envelope.
func AppendStash(dst []byte) []byte { return appendOp(dst, OpStash) }

// AppendUnstash appends an unstash of everything stashed.
func AppendUnstash(dst []byte) []byte { return appendOp(dst, OpUnstash) }

// AppendFail appends the failure of the turn.
func AppendFail(dst []byte, reason string) []byte {
	return appendText(appendOp(dst, OpFail), reason)
}

// AppendUnhandled appends an unhandled: the current envelope was not handled.
func AppendUnhandled(dst []byte) []byte { return appendOp(dst, OpUnhandled) }

// AppendDecide appends a decision about the child of a child_failed envelope.
func AppendDecide(dst []byte, directive uint8) []byte {
	return appendHead(appendOp(dst, OpDecide), majorUint, uint64(directive))
}

// AppendResetBackoff appends a reset_backoff: the supervisor counts this actor's
// failures from the beginning.
func AppendResetBackoff(dst []byte) []byte { return appendOp(dst, OpResetBackoff) }

// AppendCancelAsk appends a cancel_ask: the answer to an ask is no longer wanted.
func AppendCancelAsk(dst []byte, correlation uint64) []byte {
	return appendHead(appendOp(dst, OpCancelAsk), majorUint, correlation)
}

// AppendSaved appends a saved: the state of the actor as one CBOR item, in a version, and what the SDK keeps for
// itself besides, as a map.
func AppendSaved(dst []byte, version uint64, state, own []byte) []byte {
	dst = appendHead(appendOp(dst, OpSaved), majorUint, version)
	return appendBytes(appendBytes(dst, state), own)
}

// AppendPersist appends a persist of an entry, see package persist.
func AppendPersist(dst, entry []byte) []byte {
	return appendBytes(appendOp(dst, OpPersist), entry)
}

// AppendEnd appends the end-of-turn marker.
func AppendEnd(dst []byte) []byte { return append(dst, nullByte) }

// AppendHeader appends one entry to the encoding of headers: nil at first. It
// allocates nothing if dst has room. At most MaxHeaders entries fit.
func AppendHeader(headers []byte, key, value string) []byte {
	if len(headers) == 0 {
		headers = append(headers, majorMap<<5)
	}
	headers[0]++ // MaxHeaders is below 24, so the head is one byte
	return appendText(appendText(headers, key), value)
}

// FindHeader is the value of a header; the first one counts.
func FindHeader(headers []byte, key string) (value []byte, ok bool) {
	for {
		k, v, rest, more := NextHeader(headers)
		if !more {
			return nil, false
		}
		if string(k) == key {
			return v, true
		}
		headers = rest
	}
}

// NextHeader reads the first entry of what remains of headers and returns the
// rest; ok is false at the end. Begin with the Headers of an envelope.
func NextHeader(headers []byte) (key, value, rest []byte, ok bool) {
	at := 0
	if len(headers) > 0 && headers[0]>>5 == majorMap {
		at = 1
	}
	if at >= len(headers) {
		return nil, nil, nil, false
	}
	key, at, err := readString(headers, at, majorText, MaxHeaderKey)
	if err != nil {
		return nil, nil, nil, false
	}
	value, at, err = readString(headers, at, majorText, MaxHeaderValue)
	if err != nil {
		return nil, nil, nil, false
	}
	return key, value, headers[at:], true
}
