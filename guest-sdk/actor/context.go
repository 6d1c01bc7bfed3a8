package actor

import (
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// Context is what an actor can do during its turn. There is one, for the whole
// life of the instance; it must not be used outside the actor's methods.
type Context struct {
	msg     Message
	start   abi.Start
	rand    Rand
	asks    asks
	rates   []rate
	payload abi.Writer // see body
	scratch []byte     // see encoded
	heads   []byte     // of TellWith
	room    []byte     // see keep
	apart   []byte     // see Message.fetch
	bulk    []byte     // see largeBody
	current Actor
	written int    // bytes of the outbox since the last flush
	length  uint8  // see body
	marks   marks  // of this turn
	plain   bool   // current has no method but Receive
	before  uint64 // start.Spawned before the turn, if it hasSpawned
	misuse  string // why the turn fails, if it is misused
	stored  int    // bytes, see Persist
	settle  func(*Context) error
}

// marks are what must be known at the end of a turn.
type marks uint8

const (
	ended      marks = 1 << iota // it must be the last of its entry
	hasSpawned                   // see Context.before
	misused                      // it fails, see Context.misuse
)

// Self is the actor itself.
func (c *Context) Self() Ref { return c.start.Self }

// Parent is its supervisor.
func (c *Context) Parent() Ref { return c.start.Parent }

// Path is the place in the tree with the incarnation's number:
// wasm://system/user/a#uid. The number is another one in each run of the host: store nothing under it, but
// under Key or Name.
func (c *Context) Path() string { return c.start.Path }

// Name is the last element of the path, without the incarnation's number. It stays the same for as long as
// the actor has its place, over restarts and runs of the host.
func (c *Context) Name() string {
	p := c.start.Path
	end := len(p)
	for i := len(p) - 1; i >= 0; i-- {
		switch p[i] {
		case '#':
			end = i
		case '/':
			return p[i+1 : end]
		}
	}
	return p[:end]
}

// Key is the key of a keyed actor, which may have any bytes; empty if the actor is not one. It stays the
// same over restarts and runs of the host, so state is stored under it. Package guest-sdk/keyed turns it into
// the name.
func (c *Context) Key() string { return c.start.Key }

// Type is the name that the actor was registered under.
func (c *Context) Type() string { return c.start.Type }

// Incarnation is 0 at first and one more after every restart.
func (c *Context) Incarnation() uint64 { return c.start.Incarnation }

// Cause is why the incarnation before this one has ended, "" for the
// first.
func (c *Context) Cause() string { return c.start.Reason }

// Args reads what the actor was started with.
func (c *Context) Args() *abi.Reader { return abi.NewReader(c.start.Args) }

// DecodeArgs reads the whole of what the actor was started with into d.
func (c *Context) DecodeArgs(d Decoder) error {
	r := c.Args()
	d.UnmarshalCBOR(r)
	return r.Done()
}

// Service is the ref of a service that the actor has a grant for, by its name in the manifest's
// capabilities. It stays the same for as long as the actor lives. To make requests see package
// guest-sdk/service.
func (c *Context) Service(name string) (ref Ref, granted bool) {
	for i := range c.start.Services {
		if s := &c.start.Services[i]; s.Name == name {
			return s.Ref, true
		}
	}
	return 0, false
}

// Sender is the sender of the current message, or 0.
func (c *Context) Sender() Ref { return c.msg.sender }

// Now is the turn's time: it stands still during a turn.
func (c *Context) Now() time.Time {
	ns := int64(bits.ReverseBytes64(c.msg.time))
	return time.Unix(ns/1e9, ns%1e9).UTC()
}

// Rand is the actor's own source of randomness. Use it instead of math/rand,
// whose state is the same in every instance of an image.
func (c *Context) Rand() *Rand { return &c.rand }

// Spawn makes a child of a type of the same module and returns its ref, which
// may be used at once. An empty name lets the host choose. If the child cannot be started
// (the capability spawn is missing, the name is taken or not valid), a message of
// KindSpawnFailed comes with its ref as Sender.
func (c *Context) Spawn(typ, name string, args Encoder) Ref { return c.spawn(typ, name, args, nil) }

func (c *Context) spawn(typ, name string, args Encoder, options []byte) Ref {
	ref := abi.ChildRef(c.start.RefKey, c.start.Self.Node(), c.start.Spawned)
	if c.marks&hasSpawned == 0 {
		c.before = c.start.Spawned
		c.marks |= hasSpawned
	}
	c.start.Spawned++
	typ, name = told(typ), told(name)
	p := c.encoded(args)
	wrote(abi.AppendSpawn(appendix(usualHead+len(p)+len(typ)+len(name)+len(options)), ref, typ, name, p, options))
	return ref
}

// told returns a name in a form that the host can read. The host refuses an invalid name, and repeats it in the message of
// KindSpawnFailed. A name that is too long or not UTF-8 is sent shortened and in quotes.
func told(name string) string {
	if len(name) <= abi.MaxName && utf8.ValidString(name) {
		return name
	}
	return strconv.Quote(name[:min(len(name), 64)])
}

// Stop stops a child, or the actor itself. Others need the capability stop.
func (c *Context) Stop(ref Ref) {
	if ref == 0 {
		c.nobody("Stop")
		return
	}
	if ref == c.start.Self {
		c.marks |= ended
	}
	wrote(abi.AppendStop(appendix(usualHead), ref, ""))
}

// StopSelf ends the actor after this turn.
func (c *Context) StopSelf() { c.Stop(c.start.Self) }

// Watch asks for a message of KindTerminated when the actor has ended, also if
// it has already.
func (c *Context) Watch(ref Ref) {
	if ref == 0 {
		c.nobody("Watch")
		return
	}
	wrote(abi.AppendWatch(appendix(usualHead), ref, ""))
}

// WatchPath watches the actor that has the path now, see TellPath, or with patterns all that match. The termination of each
// is reported once. A path that begins with "+", such as +/user/workers/*, also covers the actors that are started there
// later.
func (c *Context) WatchPath(path string) {
	if path == "" {
		c.nowhere("WatchPath")
		return
	}
	wrote(abi.AppendWatch(appendix(usualHead+len(path)), 0, path))
}

// Unwatch ends a watch.
func (c *Context) Unwatch(ref Ref) {
	if ref == 0 {
		c.nobody("Unwatch")
		return
	}
	wrote(abi.AppendUnwatch(appendix(usualHead), ref, ""))
}

// UnwatchPath ends the watches of all actors that a path with patterns matches. It also ends that of
// actors started later, if it was made with the same path.
func (c *Context) UnwatchPath(path string) {
	if path == "" {
		c.nowhere("UnwatchPath")
		return
	}
	if path[0] != '+' {
		path = "+" + path
	}
	wrote(abi.AppendUnwatch(appendix(usualHead+len(path)), 0, path))
}

// After sends the actor a message of KindTimer, with key as its Correlation,
// after a delay. It replaces a timer with the same key.
func (c *Context) After(key uint64, delay time.Duration, v Encoder) { c.timer(key, delay, 0, v) }

// Every is After, again and again: each period begins with the turn of the previous message. AtRate
// keeps to a grid.
func (c *Context) Every(key uint64, period time.Duration, v Encoder) {
	c.timer(key, period, period, v)
}

func (c *Context) timer(key uint64, delay, period time.Duration, v Encoder) {
	c.dropRate(key)
	p := c.encoded(v)
	wrote(abi.AppendTimer(appendix(usualHead+len(p)), key, uint64(max(delay, 0)), uint64(max(period, 0)), p))
}

// Cancel cancels a timer, even if its message already waits in the mailbox.
func (c *Context) Cancel(key uint64) {
	c.dropRate(key)
	wrote(abi.AppendCancel(appendix(usualHead), key))
}

// SetReceiveTimeout asks for a message of KindReceiveTimeout whenever nothing
// was received for d, at least 1 ms; 0 turns it off.
func (c *Context) SetReceiveTimeout(d time.Duration) {
	wrote(abi.AppendReceiveTimeout(appendix(usualHead), uint64(max(d, 0))))
}

// Stash puts the current message aside until Unstash.
func (c *Context) Stash() {
	c.marks |= ended
	wrote(abi.AppendStash(appendix(usualHead)))
}

// Unstash puts everything stashed back to the front of the mailbox, in order.
func (c *Context) Unstash() {
	c.marks |= ended
	wrote(abi.AppendUnstash(appendix(usualHead)))
}

// Debug writes to the log. Logs of a turn that fails are kept, too.
func (c *Context) Debug(text string) { bridge.Log(abi.LogDebug, []byte(text)) }

// Info writes to the log.
func (c *Context) Info(text string) { bridge.Log(abi.LogInfo, []byte(text)) }

// Warn writes to the log.
func (c *Context) Warn(text string) { bridge.Log(abi.LogWarn, []byte(text)) }

// Error writes to the log.
func (c *Context) Error(text string) { bridge.Log(abi.LogError, []byte(text)) }

// Correlation ties an answer to the current message; keep it for Answer.
func (c *Context) Correlation() uint64 { return c.msg.correlation }

// Fail makes the turn fail when it is over, as if Receive had returned err, for code that
// has no way to return it. The first one counts. Fail(nil) does nothing.
func (c *Context) Fail(err error) {
	if err != nil {
		c.refuse(err.Error())
	}
}

// nobody notes that a call was given the ref 0.
func (c *Context) nobody(call string) { c.refuse("actor: " + call + " to ref 0, which names no actor") }

// nowhere notes that a call was given an empty path.
func (c *Context) nowhere(call string) { c.refuse("actor: " + call + " to an empty path") }

// refuse makes the turn fail when it is over: a panic costs much, and loses its text under TinyGo.
func (c *Context) refuse(what string) {
	if c.marks&misused == 0 {
		c.misuse = what
		c.marks |= misused
	}
}
