package abi

// Start is the payload of the first envelope that an instance gets.
type Start struct {
	Type        string         // of the actor, one of those that the module describes
	Path        string         // wasm://system/user/a/b#uid
	Self        Ref            //
	Parent      Ref            //
	Seed        [SeedSize]byte // of the actor's own random source
	RefKey      RefKey         // see ChildRef
	Spawned     uint64         // number of the next child, see ChildRef
	Incarnation uint64         // 0 at first, one more after every restart
	Args        []byte         // CBOR; aliases the input when decoded
	Reason      string         // why the actor was restarted, empty at first
}

// AppendStart appends the encoding of s.
func AppendStart(dst []byte, s *Start) []byte {
	n := uint64(9)
	if s.Reason != "" {
		n++
	}
	dst = appendHead(dst, majorMap, n)
	dst = appendText(appendText(dst, "type"), s.Type)
	dst = appendText(appendText(dst, "path"), s.Path)
	dst = appendHead(appendText(dst, "self"), majorUint, uint64(s.Self))
	dst = appendHead(appendText(dst, "parent"), majorUint, uint64(s.Parent))
	dst = appendBytes(appendText(dst, "seed"), s.Seed[:])
	dst = appendBytes(appendText(dst, "refkey"), s.RefKey[:])
	dst = appendHead(appendText(dst, "spawned"), majorUint, s.Spawned)
	dst = appendHead(appendText(dst, "incarnation"), majorUint, s.Incarnation)
	dst = appendBytes(appendText(dst, "args"), s.Args)
	if s.Reason != "" {
		dst = appendText(appendText(dst, "reason"), s.Reason)
	}
	return dst
}

var startKeys = []string{"type", "path", "self", "parent", "seed", "refkey", "spawned", "incarnation", "args", "reason"}

// DecodeStart reads exactly one start payload. Unknown keys are stepped over.
// The error is an *At.
func DecodeStart(s *Start, src []byte) error {
	*s = Start{}
	r := NewReader(src)
	seen := decodeMap(r, startKeys, func(key int) {
		switch key {
		case 0:
			s.Type = r.Text()
		case 1:
			s.Path = r.Text()
		case 2:
			s.Self = r.Ref()
		case 3:
			s.Parent = r.Ref()
		case 4:
			readExactly(r, s.Seed[:])
		case 5:
			readExactly(r, s.RefKey[:])
		case 6:
			s.Spawned = r.Uint()
		case 7:
			s.Incarnation = r.Uint()
		case 8:
			s.Args = r.ByteString()
		case 9:
			s.Reason = r.Text()
		}
	})
	const required = 1<<9 - 1
	if seen&required != required {
		r.Fail(ErrMissing)
	}
	return r.Done()
}

// readExactly reads a byte string of the length of dst.
func readExactly(r *Reader, dst []byte) {
	if b := r.ByteString(); len(b) == len(dst) {
		copy(dst, b)
	} else {
		r.Fail(ErrRange)
	}
}
