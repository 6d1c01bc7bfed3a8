package actor

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// Context is what an actor can do during its turn. There is one, for the whole
// life of the instance; it must not be used outside Receive, Start and Stop.
type Context struct {
	start   abi.Start
	msg     Message
	rand    Rand
	asks    map[uint64]func(*Context, *Message) error
	asked   uint64
	payload abi.Writer // scratch
	ended   bool       // the turn must be the last of its entry
}

// Self is the actor itself.
func (c *Context) Self() Ref { return c.start.Self }

// Parent is its supervisor.
func (c *Context) Parent() Ref { return c.start.Parent }

// Path is the place in the tree with the incarnation's number:
// wasm://system/user/a#uid.
func (c *Context) Path() string { return c.start.Path }

// Type is the name that the actor was registered under.
func (c *Context) Type() string { return c.start.Type }

// Incarnation is 0 at first and one more after every restart.
func (c *Context) Incarnation() uint64 { return c.start.Incarnation }

// RestartReason is why the incarnation before this one has ended, "" for the
// first.
func (c *Context) RestartReason() string { return c.start.Reason }

// Args reads what the actor was started with.
func (c *Context) Args() *abi.Reader { return abi.NewReader(c.start.Args) }

// DecodeArgs reads the whole of what the actor was started with into d.
func (c *Context) DecodeArgs(d Decoder) error {
	r := c.Args()
	d.UnmarshalCBOR(r)
	return r.Done()
}

// Sender is who has sent the current message; 0 for nobody.
func (c *Context) Sender() Ref { return c.msg.env.Sender }

// Now is the turn's time: it stands still during a turn.
func (c *Context) Now() time.Time {
	return time.Unix(c.msg.env.Time/1e9, c.msg.env.Time%1e9).UTC()
}

// Rand is the actor's own source of randomness. Use it instead of math/rand,
// whose state is the same in every instance of an image.
func (c *Context) Rand() *Rand { return &c.rand }

// Tell sends a message.
func (c *Context) Tell(to Ref, v Encoder) { c.send(to, "", 0, 0, v) }

// TellPath sends a message to whoever has the path at delivery: "/user/a", or
// "./name" for a child. Other paths than children's need the capability send.
func (c *Context) TellPath(path string, v Encoder) { c.send(0, path, 0, 0, v) }

// Reply answers the current message. It always returns nil, so that
// `return ctx.Reply(v)` reads well.
func (c *Context) Reply(v Encoder) error {
	return c.Answer(c.msg.env.Sender, c.msg.env.Correlation, v)
}

// ReplyError answers the current message with an error.
func (c *Context) ReplyError(reason string) error {
	return c.AnswerError(c.msg.env.Sender, c.msg.env.Correlation, reason)
}

// Answer replies to an earlier message, whose Sender and Correlation were kept.
func (c *Context) Answer(to Ref, correlation uint64, v Encoder) error {
	if to != 0 {
		c.send(to, "", correlation, abi.FlagReply, v)
	}
	return nil
}

// AnswerError is Answer with an error.
func (c *Context) AnswerError(to Ref, correlation uint64, reason string) error {
	if to != 0 {
		c.send(to, "", correlation, abi.FlagReplyError, Text(reason))
	}
	return nil
}

// Forward sends the current message on in the name of its sender, who gets the
// answer.
func (c *Context) Forward(to Ref) {
	room(16)
	out = abi.AppendForward(out, to, "")
}

// ForwardPath is Forward to a path; see TellPath.
func (c *Context) ForwardPath(path string) {
	room(len(path) + 16)
	out = abi.AppendForward(out, 0, path)
}

// Ask sends a message and calls then with the answer, in a later turn: a message
// of KindReply, KindReplyError or KindAskTimeout. Timeouts are 1 ms to 24 h.
// Pending asks are forgotten by a restart.
func (c *Context) Ask(to Ref, v Encoder, timeout time.Duration, then func(*Context, *Message) error) {
	c.ask(to, "", v, timeout, then)
}

// AskPath is Ask to a path; see TellPath.
func (c *Context) AskPath(path string, v Encoder, timeout time.Duration, then func(*Context, *Message) error) {
	c.ask(0, path, v, timeout, then)
}

func (c *Context) ask(to Ref, path string, v Encoder, timeout time.Duration, then func(*Context, *Message) error) {
	c.asked++
	if c.asks == nil {
		c.asks = make(map[uint64]func(*Context, *Message) error)
	}
	c.asks[c.asked] = then
	p := c.encode(v)
	room(len(p) + len(path) + 64)
	out = abi.AppendAsk(out, to, path, c.asked, uint64(timeout), nil, p)
}

// Spawn makes a child of a type of the same module and returns its ref, which
// may be used at once. An empty name lets the host choose. If the child cannot be
// (the capability spawn is missing, the name is taken), a message of
// KindSpawnFailed comes with its ref as Sender.
func (c *Context) Spawn(typ, name string, args Encoder) Ref { return c.spawn(typ, name, args, nil) }

func (c *Context) spawn(typ, name string, args Encoder, options []byte) Ref {
	ref := abi.ChildRef(c.start.RefKey, c.start.Self.Node(), c.start.Spawned)
	c.start.Spawned++
	p := c.encode(args)
	room(len(p) + len(typ) + len(name) + len(options) + 64)
	out = abi.AppendSpawn(out, ref, typ, name, p, options)
	return ref
}

// Stop stops a child, or the actor itself. Others need the capability stop.
func (c *Context) Stop(ref Ref) {
	if ref == c.start.Self {
		c.ended = true
	}
	room(16)
	out = abi.AppendStop(out, ref, "")
}

// StopSelf ends the actor after this turn.
func (c *Context) StopSelf() { c.Stop(c.start.Self) }

// Watch asks for a message of KindTerminated when the actor has ended, also if
// it has already.
func (c *Context) Watch(ref Ref) {
	room(16)
	out = abi.AppendWatch(out, ref, "")
}

// WatchPath watches whoever has the path now; see TellPath.
func (c *Context) WatchPath(path string) {
	room(len(path) + 16)
	out = abi.AppendWatch(out, 0, path)
}

// Unwatch takes a watch back.
func (c *Context) Unwatch(ref Ref) {
	room(16)
	out = abi.AppendUnwatch(out, ref, "")
}

// After sends the actor a message of KindTimer, with key as its Correlation,
// after a delay. The same key replaces.
func (c *Context) After(key uint64, delay time.Duration, v Encoder) { c.timer(key, delay, 0, v) }

// Every is After, again and again.
func (c *Context) Every(key uint64, period time.Duration, v Encoder) {
	c.timer(key, period, period, v)
}

func (c *Context) timer(key uint64, delay, period time.Duration, v Encoder) {
	p := c.encode(v)
	room(len(p) + 64)
	out = abi.AppendTimer(out, key, uint64(max(delay, 0)), uint64(max(period, 0)), p)
}

// Cancel takes a timer back, also when its message waits in the mailbox.
func (c *Context) Cancel(key uint64) {
	room(16)
	out = abi.AppendCancel(out, key)
}

// SetReceiveTimeout asks for a message of KindReceiveTimeout whenever nothing
// was received for d, at least 1 ms; 0 turns it off.
func (c *Context) SetReceiveTimeout(d time.Duration) {
	room(16)
	out = abi.AppendReceiveTimeout(out, uint64(max(d, 0)))
}

// Stash keeps the current message aside until Unstash.
func (c *Context) Stash() {
	c.ended = true
	room(4)
	out = abi.AppendStash(out)
}

// Unstash puts everything stashed back to the front of the mailbox, in order.
func (c *Context) Unstash() {
	c.ended = true
	room(4)
	out = abi.AppendUnstash(out)
}

// Debug writes to the log. Logs of a turn that fails are kept, too.
func (c *Context) Debug(text string) { bridge.Log(abi.LogDebug, []byte(text)) }

// Info writes to the log.
func (c *Context) Info(text string) { bridge.Log(abi.LogInfo, []byte(text)) }

// Warn writes to the log.
func (c *Context) Warn(text string) { bridge.Log(abi.LogWarn, []byte(text)) }

// Error writes to the log.
func (c *Context) Error(text string) { bridge.Log(abi.LogError, []byte(text)) }

// send appends one send command.
func (c *Context) send(to Ref, path string, correlation, flags uint64, v Encoder) {
	p := c.encode(v)
	room(len(p) + len(path) + 64)
	out = abi.AppendSend(out, to, path, correlation, flags, nil, p)
}

// encode writes v into the scratch buffer; valid until the next call.
func (c *Context) encode(v Encoder) []byte {
	c.payload.Reset(c.payload.Bytes()[:0])
	if v == nil {
		c.payload.Null()
	} else {
		v.MarshalCBOR(&c.payload)
	}
	return c.payload.Bytes()
}

// Correlation ties an answer to the current message; keep it for Answer.
func (c *Context) Correlation() uint64 { return c.msg.env.Correlation }
