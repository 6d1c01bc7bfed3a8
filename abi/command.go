package abi

// Command is one request that a turn leaves in the outbox. Which fields count
// depends on Op; the others are zero. Slices alias the input.
type Command struct {
	Op          Op
	ToRef       Ref    // send, forward, ask, stop, watch, unwatch: the target, if it is a ref
	ToPath      []byte // the same: the target, if it is a path, else nil
	Ref         Ref    // spawn: the child
	Correlation uint64 // send, ask, cancel_ask
	Flags       uint64 // send
	Key         uint64 // timer, cancel; saved: the version
	Delay       uint64 // ns: timer; ask and receive_timeout: the timeout
	Period      uint64 // ns: timer, 0 for once
	Directive   uint8  // decide
	Name        []byte // spawn; nil: the host chooses. If it or
	Type        []byte // the type is invalid, the spawn fails, not the turn
	Reason      []byte // fail
	Headers     []byte // send, ask: an encoded map, nil: none
	Payload     []byte // send, ask, timer; spawn: the arguments; saved: the state; persist: an entry, see package persist
	Options     []byte // spawn: an encoded map, nil: none; saved: the same, what the SDK keeps besides
}

// DecodeCommand reads the command, or the end-of-turn marker (OpEnd), at the
// start of src and returns its length. On an error n is the offset of what is
// wrong. It does not allocate.
func DecodeCommand(c *Command, src []byte) (n int, err error) {
	n, bad := decodeCommand(c, src)
	if bad != nil {
		return n, bad
	}
	return n, nil
}

// arity of each operation, the operation itself included.
var arity = [...]uint64{6, 2, 6, 6, 2, 2, 2, 5, 2, 2, 1, 1, 2, 1, 2, 1, 2, 4, 2}

func decodeCommand(c *Command, b []byte) (int, *Error) {
	*c = Command{}
	if n := c.decodePlainSend(b); n > 0 {
		return n, nil
	}
	if isNull(b, 0) {
		c.Op = OpEnd
		return 1, nil
	}
	m, n, at, err := head(b, 0)
	switch {
	case err != nil:
		return 0, err
	case m != majorArray:
		return 0, ErrType
	case n == 0:
		return 0, ErrArity
	}
	start := at
	op, at, err := readUint(b, at)
	switch {
	case err != nil:
		return at, err
	case op > reservedOp:
		return start, ErrOp
	case op > uint64(maxOp):
		return start, ErrOpLater
	case n != arity[op]:
		return 0, ErrArity
	}
	c.Op = Op(op)
	switch c.Op {
	case OpSend:
		return c.decodeSend(b, at)
	case OpAsk:
		return c.decodeAsk(b, at)
	case OpSpawn:
		return c.decodeSpawn(b, at)
	case OpForward, OpStop, OpWatch, OpUnwatch:
		return c.decodeTarget(b, at)
	case OpTimer:
		return c.decodeTimer(b, at)
	case OpCancel:
		c.Key, at, err = readUint(b, at)
	case OpCancelAsk:
		c.Correlation, at, err = readUint(b, at)
	case OpSaved:
		return c.decodeSaved(b, at)
	case OpReceiveTimeout:
		start = at
		if c.Delay, at, err = readUint(b, at); err == nil && (c.Delay > MaxDuration || c.Delay != 0 && c.Delay < MinReceiveTimeout) {
			return start, ErrRange
		}
	case OpDecide:
		start = at
		var v uint64
		if v, at, err = readUint(b, at); err == nil && (v < DirectiveResume || v > DirectiveSuspend) {
			return start, ErrRange
		}
		c.Directive = uint8(v)
	case OpPersist:
		c.Payload, at, err = readBytes(b, at)
	case OpFail:
		c.Reason, at, err = readString(b, at, majorText, MaxReason)
	}
	return at, err
}

// decodePlainSend reads what nearly all commands are: a send to a ref, with small
// correlation and flags, no headers and a short payload. It returns 0, and
// changes nothing, for everything else.
func (c *Command) decodePlainSend(b []byte) int {
	const min = 2 + 9 + 4
	if len(b) < min || b[0] != majorArray<<5|6 || b[1] != byte(OpSend) || b[2] != majorUint<<5|27 || b[3] == 0 && b[4] == 0 && b[5] == 0 && b[6] == 0 {
		return 0
	}
	correlation, flags, size := b[11], b[12], b[14]
	if correlation >= 24 || flags > byte(FlagReply) || b[13] != nullByte || size < majorBytes<<5 || size >= majorBytes<<5|24 {
		return 0
	}
	end := min + int(size&31)
	if end > len(b) {
		return 0
	}
	c.Op = OpSend
	c.ToRef = Ref(binary8(b[3:11]))
	c.Correlation, c.Flags = uint64(correlation), uint64(flags)
	c.Payload = b[min:end:end]
	return end
}

func (c *Command) decodeTarget(b []byte, at int) (int, *Error) {
	if at < len(b) && b[at]>>5 == majorText {
		path, next, err := readString(b, at, majorText, MaxPath)
		if err == nil && len(path) == 0 {
			return at, ErrPath
		}
		c.ToPath = path
		return next, err
	}
	v, next, err := readUint(b, at)
	if err == nil && v == 0 {
		return at, ErrRef
	}
	c.ToRef = Ref(v)
	return next, err
}

func (c *Command) decodeSend(b []byte, at int) (int, *Error) {
	at, err := c.decodeTarget(b, at)
	if err != nil {
		return at, err
	}
	if c.Correlation, at, err = readUint(b, at); err != nil {
		return at, err
	}
	start := at
	if c.Flags, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if c.Flags&^flagMask != 0 || c.Flags&(FlagReply|FlagReplyError) == FlagReply|FlagReplyError {
		return start, ErrFlags
	}
	return c.decodeBody(b, at)
}

func (c *Command) decodeAsk(b []byte, at int) (int, *Error) {
	at, err := c.decodeTarget(b, at)
	if err != nil {
		return at, err
	}
	start := at
	if c.Correlation, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if c.Correlation == 0 {
		return start, ErrCorrelation
	}
	start = at
	if c.Delay, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if c.Delay < MinAskTimeout || c.Delay > MaxAskTimeout {
		return start, ErrRange
	}
	return c.decodeBody(b, at)
}

// decodeBody reads headers and payload.
func (c *Command) decodeBody(b []byte, at int) (int, *Error) {
	var err *Error
	if c.Headers, at, err = readHeaders(b, at); err != nil {
		return at, err
	}
	c.Payload, at, err = readBytes(b, at)
	return at, err
}

func (c *Command) decodeSpawn(b []byte, at int) (int, *Error) {
	start := at
	v, at, err := readUint(b, at)
	if err != nil {
		return at, err
	}
	if v == 0 {
		return start, ErrRef
	}
	c.Ref = Ref(v)
	if c.Type, at, err = readString(b, at, majorText, MaxPath); err != nil {
		return at, err
	}
	if isNull(b, at) {
		at++
	} else if c.Name, at, err = readString(b, at, majorText, MaxPath); err != nil {
		return at, err
	}
	if c.Payload, at, err = readBytes(b, at); err != nil {
		return at, err
	}
	if isNull(b, at) {
		return at + 1, nil
	}
	start = at
	if at < len(b) && b[at]>>5 != majorMap {
		return start, ErrType
	}
	if at, err = skip(b, at, 1); err != nil {
		return at, err
	}
	if at-start > MaxOptions {
		return start, ErrTooLong
	}
	c.Options = b[start:at:at]
	return at, nil
}

func (c *Command) decodeSaved(b []byte, at int) (int, *Error) {
	var err *Error
	if c.Key, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if c.Payload, at, err = readBytes(b, at); err != nil {
		return at, err
	}
	c.Options, at, err = readBytes(b, at)
	return at, err
}

func (c *Command) decodeTimer(b []byte, at int) (int, *Error) {
	var err *Error
	if c.Key, at, err = readUint(b, at); err != nil {
		return at, err
	}
	start := at
	if c.Delay, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if c.Delay > MaxDuration {
		return start, ErrRange
	}
	start = at
	if c.Period, at, err = readUint(b, at); err != nil {
		return at, err
	}
	if c.Period > MaxDuration {
		return start, ErrRange
	}
	c.Payload, at, err = readBytes(b, at)
	return at, err
}
