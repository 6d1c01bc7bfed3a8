package abi

import "unsafe"

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
	Services    []Service      // that the actor has a grant for, sorted by name
	Key         string         // of a keyed actor, any bytes; empty: it has none
	State       *State         // that it goes on with; nil: it begins anew
}

// State is what another module has answered to KindSave with.
type State struct {
	Version uint64
	Payload []byte // one CBOR item; aliases the input when decoded
	Own     []byte // a map, of the SDK; likewise
}

// Service is the ref of a service of the host's. Name has 1 to MaxServiceName bytes, see
// ValidServiceName.
type Service struct {
	Name string
	Ref  Ref
}

// The keys as they are encoded: a text of less than 24 bytes has its length in its first byte.
const (
	startType        = "\x64" + "type"
	startPath        = "\x64" + "path"
	startSelf        = "\x64" + "self"
	startParent      = "\x66" + "parent"
	startSeed        = "\x64" + "seed"
	startRefkey      = "\x66" + "refkey"
	startSpawned     = "\x67" + "spawned"
	startIncarnation = "\x6b" + "incarnation"
	startArgs        = "\x64" + "args"
	startReason      = "\x66" + "reason"
	startServices    = "\x68" + "services"
	startKey         = "\x63" + "key"
	startState       = "\x65" + "state"
)

// AppendStart appends the encoding of s. The services must be at most MaxServices, and sorted by name.
func AppendStart(dst []byte, s *Start) []byte {
	n := uint64(9)
	if s.Reason != "" {
		n++
	}
	if len(s.Services) > 0 {
		n++
	}
	if s.Key != "" {
		n++
	}
	if s.State != nil {
		n++
	}
	dst = appendHead(dst, majorMap, n)
	dst = appendText(append(dst, startType...), s.Type)
	dst = appendText(append(dst, startPath...), s.Path)
	dst = appendHead(append(dst, startSelf...), majorUint, uint64(s.Self))
	dst = appendHead(append(dst, startParent...), majorUint, uint64(s.Parent))
	dst = appendBytes(append(dst, startSeed...), s.Seed[:])
	dst = appendBytes(append(dst, startRefkey...), s.RefKey[:])
	dst = appendHead(append(dst, startSpawned...), majorUint, s.Spawned)
	dst = appendHead(append(dst, startIncarnation...), majorUint, s.Incarnation)
	dst = appendBytes(append(dst, startArgs...), s.Args)
	if s.Reason != "" {
		dst = appendText(append(dst, startReason...), s.Reason)
	}
	if len(s.Services) > 0 {
		dst = appendHead(append(dst, startServices...), majorMap, uint64(len(s.Services)))
		for i := range s.Services {
			dst = appendHead(appendText(dst, s.Services[i].Name), majorUint, uint64(s.Services[i].Ref))
		}
	}
	if s.Key != "" {
		dst = appendHead(append(dst, startKey...), majorBytes, uint64(len(s.Key)))
		dst = append(dst, s.Key...)
	}
	if s.State != nil {
		dst = appendHead(append(dst, startState...), majorArray, 3)
		dst = appendHead(dst, majorUint, s.State.Version)
		dst = appendBytes(appendBytes(dst, s.State.Payload), s.State.Own)
	}
	return dst
}

var startKeys = []string{"type", "path", "self", "parent", "seed", "refkey", "spawned", "incarnation", "args", "reason", "services", "key", "state"}

// DecodeStart reads exactly one start payload. Unknown keys are stepped over.
// The error is an *At.
func DecodeStart(s *Start, src []byte) error { return decodeStart(s, NewReader(src)) }

// DecodeStartInPlace is DecodeStart, but all texts of s alias src, as Args does; so src must not change as
// long as s is used.
func DecodeStartInPlace(s *Start, src []byte) error {
	r := NewReader(src)
	r.copied = src
	return decodeStart(s, r)
}

func decodeStart(s *Start, r *Reader) error {
	*s = Start{}
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
		case 10:
			s.Services = readServices(r)
		case 11:
			b := r.Bytes()
			s.Key = unsafe.String(unsafe.SliceData(b), len(b))
		case 12:
			s.State = readState(r)
		}
	})
	const required = 1<<9 - 1
	if seen&required != required {
		r.Fail(ErrMissing)
	}
	return r.Done()
}

func readState(r *Reader) *State {
	if n := r.Array(); r.err == nil && n != 3 {
		r.Fail(ErrArity)
	}
	return &State{Version: r.Uint(), Payload: r.ByteString(), Own: r.ByteString()}
}

// readServices reads a map of names to refs. The result is sorted by name.
func readServices(r *Reader) []Service {
	n := r.Map()
	if n > MaxServices {
		r.Fail(ErrRange)
		return nil
	}
	var list []Service
	for range n {
		name := r.Text()
		if r.err == nil && !ValidServiceName(name) {
			r.Fail(ErrServiceName)
		}
		ref := r.Ref()
		if r.err == nil && ref == 0 {
			r.Fail(ErrRef)
		}
		at := len(list)
		for at > 0 && list[at-1].Name >= name {
			at--
		}
		if at < len(list) && list[at].Name == name {
			r.Fail(ErrDuplicate)
		}
		if r.err != nil {
			return nil
		}
		list = append(list, Service{})
		copy(list[at+1:], list[at:])
		list[at] = Service{name, ref}
	}
	return list
}

// readExactly reads a byte string of the length of dst.
func readExactly(r *Reader, dst []byte) {
	if b := r.ByteString(); len(b) == len(dst) {
		copy(dst, b)
	} else {
		r.Fail(ErrRange)
	}
}
