package durable

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Random histories of a system with durable actors: a short list of what happens, drawn from all that a guest can do and a manifest can
// say, is played twice. One system never stops. The other has checkpoints, is killed at rest, and comes back, early or late.
// Both are the same then, to the bit.

// cmd is a command of a guest in a history.
type cmd struct {
	Op      string
	Path    string
	Key     uint64
	D       time.Duration
	Name    string
	Options string
	Then    []act // in the message
}

// act is a record of a puppet's script.
type act struct {
	Kind byte // 0: now; else what comes later
	Flag byte
	Cmds []cmd
}

// historyImage is that of the puppet, loaded once: each that is loaded has a file open.
func historyImage(t testing.TB) *runtime.Image {
	historyOnce.Do(func() { historyPuppet = puppetImage(t) })
	return historyPuppet
}

var (
	historyOnce   sync.Once
	historyPuppet *runtime.Image
)

// happening is one thing that happens to a system.
type happening struct {
	What string
	Path string
	Acts []act
	D    time.Duration
	N    int
	Late bool

	Inner []happening // while an upgrade is on probation
}

func (h happening) String() string {
	return strings.NewReplacer("Path:", "", "Then:[]", "", "Name: ", "", "Options: ", "", "D:0s", "", "Key:0", "", "Acts:[]", "", "Late:false", "", "Inner:[]", "").Replace(fmt.Sprintf("%+v", struct {
		What string
		Path string
		Acts []act
		D    time.Duration
		N    int
		Late bool

		Inner []happening
	}(h)))
}

// role is what a manifest says about an actor.
type role struct {
	Name      string
	Otherwise supervision.Directive
	Kind      supervision.Kind
	Keep      bool
	Restarts  int
	Exceeded  supervision.Directive
	Shared    bool
	Sliding   bool
	Backoff   int // 0: none
	Crashed   int
	Limits    int
	Life      supervision.Lifetime
	Signif    bool
	Shutdown  supervision.Shutdown
	Rights    int // 0: all
	Services  int // a set of bits
	Start     []act
	Children  []role
}

var paths = []string{
	"p0", "p0", "p1", "p1", "p2", "p0/a", "p0/b", "p0/a/x", "p1/a", "p1/s0", "p0/s0", "p0/s1", "p2/s0", "p0/s0/s0", "p0/a/s0", "p0/$0", "p1/$0", "p0/$1", "p1/$1", "p0/$0/$0", "outside",
}

var targets = append([]string{"./a", "./s0", "../p0", "../p1", "p*", "p0/*", "*/s0"}, paths...)

func full(path string) string {
	if strings.HasPrefix(path, ".") {
		return path
	}
	return "/user/" + path
}

var durations = []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 20 * time.Millisecond, 150 * time.Millisecond, 2 * time.Second, time.Hour}

func drawCmd(rt *rapid.T, deep int, hook bool) (c cmd) {
	ops := []string{"send", "send", "ask", "stop", "watch", "watch", "unwatch", "timer", "timer", "repeat", "cancel", "receive", "stash", "unstash", "fail", "unhandled", "reset", "cancelask", "identify", "reply", "noreply", "stopself", "out", "askout", "serve"}
	if hook {
		ops = append(ops, "decide", "decide", "forward")
	} else {
		ops = append(ops, "spawn", "spawn", "spawn", "spawn")
	}
	c.Op = rapid.SampledFrom(ops).Draw(rt, "op")
	c.Path = rapid.SampledFrom(targets).Draw(rt, "to")
	c.Key = uint64(rapid.IntRange(1, 3).Draw(rt, "key"))
	c.D = rapid.SampledFrom(durations).Draw(rt, "d")
	switch c.Op {
	case "send", "ask", "timer", "repeat":
		if deep > 0 && rapid.IntRange(0, 2).Draw(rt, "deep") == 0 {
			c.Then = drawActs(rt, deep-1, false)
		}
	case "spawn":
		c.Name = rapid.SampledFrom([]string{"", "", "s0", "s1", "a"}).Draw(rt, "name")
		c.Options = rapid.SampledFrom([]string{"", "", "permanent", "temporary", "significant", "resume", "stop", "escalate", "suspend", "ask", "redeliver", "letter", "keep", "backoff", "box", "throughput"}).Draw(rt, "options")
		if deep > 0 {
			c.Then = drawActs(rt, deep-1, true)
		}
	}
	return c
}

var hookKinds = []abi.Kind{abi.KindStart, abi.KindReply, abi.KindReplyError, abi.KindAskTimeout, abi.KindTerminated, abi.KindTimer, abi.KindReceiveTimeout, abi.KindSpawnFailed, abi.KindStop, abi.KindPreRestart, abi.KindChildFailed}

func drawActs(rt *rapid.T, deep int, start bool) (acts []act) {
	for range rapid.IntRange(0, 2).Draw(rt, "acts") {
		a := act{}
		if start || rapid.IntRange(0, 3).Draw(rt, "later") == 0 {
			a.Kind = byte(rapid.SampledFrom(hookKinds).Draw(rt, "kind"))
		}
		a.Flag = rapid.SampledFrom([]byte{0, 0, 0, last, last, last, trap}).Draw(rt, "flag")
		for range rapid.IntRange(0, 3).Draw(rt, "cmds") {
			a.Cmds = append(a.Cmds, drawCmd(rt, deep, a.Kind != 0))
		}
		acts = append(acts, a)
	}
	return acts
}

func drawRole(rt *rapid.T, name string, deep int) (r role) {
	r.Name = name
	r.Otherwise = rapid.SampledFrom([]supervision.Directive{supervision.Restart, supervision.Restart, supervision.Resume, supervision.Stop, supervision.Escalate, supervision.Suspend, supervision.Ask}).Draw(rt, "otherwise")
	r.Kind = rapid.SampledFrom([]supervision.Kind{supervision.OneForOne, supervision.OneForOne, supervision.AllForOne, supervision.RestForOne}).Draw(rt, "strategy")
	r.Keep = rapid.Bool().Draw(rt, "keep")
	r.Restarts = rapid.SampledFrom([]int{supervision.Unlimited, supervision.Unlimited, 1, 2}).Draw(rt, "restarts")
	r.Exceeded = rapid.SampledFrom([]supervision.Directive{0, supervision.Stop, supervision.Escalate}).Draw(rt, "exceeded")
	r.Shared = rapid.IntRange(0, 3).Draw(rt, "shared") == 0
	r.Sliding = rapid.Bool().Draw(rt, "sliding")
	r.Backoff = rapid.IntRange(0, 7).Draw(rt, "backoff")
	r.Crashed = rapid.SampledFrom([]int{0, 0, -1, 1, 2}).Draw(rt, "crashed")
	r.Limits = rapid.IntRange(0, 9).Draw(rt, "limits")
	r.Life = rapid.SampledFrom([]supervision.Lifetime{supervision.Transient, supervision.Transient, supervision.Permanent, supervision.Temporary}).Draw(rt, "lifetime")
	r.Signif = r.Life != supervision.Permanent && rapid.IntRange(0, 3).Draw(rt, "significant") == 0
	r.Shutdown = rapid.SampledFrom([]supervision.Shutdown{supervision.ShutdownNever, supervision.ShutdownNever, supervision.ShutdownAny, supervision.ShutdownAll}).Draw(rt, "shutdown")
	r.Rights = rapid.IntRange(0, 7).Draw(rt, "rights")
	r.Services = rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(rt, "services")
	r.Start = drawActs(rt, 1, true)
	if deep > 0 {
		for i := range rapid.IntRange(0, 2).Draw(rt, "children") {
			r.Children = append(r.Children, drawRole(rt, string(rune('a'+i)), deep-1))
		}
		if deep == 1 && len(r.Children) > 0 {
			r.Children[0].Name = "x"
		}
	}
	return r
}

func (r role) props(t testing.TB) host.Props { return r.of(host.Guest(historyImage(t), "puppet")) }

// of are the props of a role; base says what code it runs.
func (r role) of(base host.Props) host.Props {
	s := supervision.Default().WithOtherwise(r.Otherwise).WithKind(r.Kind).WithKeepChildren(r.Keep).WithShutdown(r.Shutdown).WithExceeded(r.Exceeded).WithShared(r.Shared).WithSliding(r.Sliding)
	if r.Restarts > 0 {
		s = s.WithMaxRestarts(r.Restarts, time.Second)
	}
	if b, ok := delays(r.Backoff); ok {
		s = s.WithBackoff(b)
	}
	p := r.rights(puppetOf(base)).WithArgs(host.Raw(scriptOf(nil, r.Start))).WithSupervision(s).WithLimits(r.limits()).WithLifetime(r.Life).WithSignificant(r.Signif)
	switch {
	case r.Crashed < 0:
		p = p.WithCrashedMessage(host.DeadLetterCrashed())
	case r.Crashed > 0:
		p = p.WithCrashedMessage(host.RedeliverCrashed(r.Crashed))
	}
	var kids []host.Child
	for _, k := range r.Children {
		kids = append(kids, host.Child{Name: k.Name, Props: k.of(base)})
	}
	if kids != nil {
		p = p.WithChildren(kids...)
	}
	return p
}

// limits are those of a role.
func (r role) limits() (l host.Limits) {
	switch r.Limits {
	case 1:
		l.Mailbox = 3
	case 2:
		l.Stash = 1
	case 3:
		l.Timers = 1
	case 4:
		l.Children = 1
	case 5:
		l.Watches, l.Asks = 1, 1
	case 6:
		l.Tree.Actors = 3
	}
	return l
}

// rights are the props with what the actor may do.
func (r role) rights(p host.Props) host.Props {
	all := []string{"/**"}
	switch r.Rights {
	case 1:
		p = p.WithCapabilities(host.Capabilities{Send: all, Stop: all})
	case 2:
		p = p.WithCapabilities(host.Capabilities{Send: []string{"/user/p0", "/user/p1/*", "/user/outside"}, Spawn: []string{"*"}})
	case 3:
		p = p.WithCapabilities(host.Capabilities{})
	}
	for i, name := range []string{"s1", "s2"} {
		if r.Services&(1<<i) != 0 {
			p = p.WithGrant(name, name)
		}
	}
	return p
}

func delays(n int) (b supervision.Backoff, ok bool) {
	if n == 0 || n > 5 {
		return b, false
	}
	jitter := "none"
	if n%2 == 0 {
		jitter = "full"
	}
	p, err := backoff.Spec{Min: 20 * time.Millisecond, Max: time.Second, Jitter: jitter}.Policy()
	if err != nil {
		panic(err)
	}
	b.Policy = p
	switch n {
	case 2:
		b.Grace = 5 * time.Millisecond
	case 3:
		b.Grace, b.Overtake, b.Stash = 5*time.Millisecond, true, 2
	case 4:
		b.Meanwhile, b.MaxFailures, b.GiveUp = supervision.MeanwhileDrop, 2, supervision.GiveUpSuspend
	case 5:
		b.Meanwhile, b.Reply, b.Reset = supervision.MeanwhileReply, "later", supervision.ResetManual
	}
	return b, true
}

func drawHistory(rt *rapid.T, kinds []string) (roles []role, all []happening) {
	for i := range rapid.IntRange(1, 3).Draw(rt, "actors") {
		roles = append(roles, drawRole(rt, fmt.Sprint("p", i), 2))
	}
	return roles, drawHappenings(rt, kinds)
}

func drawHappenings(rt *rapid.T, kinds []string) (all []happening) {
	for range rapid.IntRange(1, 16).Draw(rt, "happenings") {
		h := happening{What: rapid.SampledFrom(kinds).Draw(rt, "what"), Path: rapid.SampledFrom(paths).Draw(rt, "path")}
		switch h.What {
		case "tell":
			h.Acts = drawActs(rt, 2, false)
		case "pass":
			h.D = rapid.SampledFrom(durations).Draw(rt, "d")
		case "kill":
			h.Late = rapid.Bool().Draw(rt, "late")
			h.N = rapid.IntRange(0, 5).Draw(rt, "glance")
		case "cut":
			h.Late = rapid.Bool().Draw(rt, "late")
			h.N = rapid.IntRange(0, 40).Draw(rt, "steps")
		case "decide":
			h.N = rapid.IntRange(1, 4).Draw(rt, "directive")
		}
		all = append(all, h)
	}
	return all
}

// optionsOf are the options of a spawn, as the test's own reader knows them.
func optionsOf(name string) []byte {
	if name == "" {
		return nil
	}
	b, _ := cbor.Marshal(map[string]string{"is": name})
	return b
}

func readOptions(b []byte) (o host.SpawnOptions, err error) {
	var m map[string]string
	if err := cbor.Unmarshal(b, &m); err != nil {
		return o, err
	}
	with := func(s supervision.Strategy) { o.Supervision = &s }
	s := supervision.Default().WithOtherwise(supervision.Restart)
	switch m["is"] {
	case "permanent":
		o.Lifetime = supervision.Permanent
	case "temporary":
		o.Lifetime = supervision.Temporary
	case "significant":
		o.Significant = true
	case "resume":
		with(s.WithOtherwise(supervision.Resume))
	case "stop":
		with(s.WithOtherwise(supervision.Stop))
	case "escalate":
		with(s.WithOtherwise(supervision.Escalate))
	case "suspend":
		with(s.WithOtherwise(supervision.Suspend))
	case "ask":
		with(s.WithOtherwise(supervision.Ask).WithKind(supervision.RestForOne))
	case "redeliver":
		o.Crashed = host.RedeliverCrashed(1)
	case "letter":
		o.Crashed = host.DeadLetterCrashed()
	case "keep":
		with(s.WithKeepChildren(true).WithKind(supervision.AllForOne))
	case "backoff":
		b, _ := delays(2)
		with(s.WithBackoff(b))
	case "box":
		o.Mailbox = mailbox.New(mailbox.Priority).Make
	case "roomy":
		o.MailboxLimits.Messages = 10
	case "throughput":
		o.Dispatcher = o.Dispatcher.WithThroughput(2)
	default:
		return o, errors.New("unknown")
	}
	return o, nil
}

// spawner is what an actor needs for refs of children.
type spawner struct {
	key abi.RefKey
	n   uint64
}

func scriptOf(s *spawner, acts []act) []byte {
	records := [][]byte{rec(recAdd, 1)}
	for _, a := range acts {
		var all [][]byte
		for _, c := range a.Cmds {
			all = append(all, c.bytes(s))
		}
		if b := slices.Concat(all...); a.Kind != 0 && len(b) > 900 {
			continue
		}
		records = append(records, rec(a.Kind, a.Flag, all...))
	}
	return script(records...)
}

func (c cmd) bytes(s *spawner) []byte {
	path := full(c.Path)
	if (c.Op == "stop" || c.Op == "stopself") && c.Path == "outside" {
		path = "/user/nobody" // outside is there again in each process
	}
	then := func() []byte { return scriptOf(nil, c.Then) }
	reply := func(flag uint64) []byte { return abi.AppendSend(nil, 0, path, c.Key, flag, nil, add) }
	switch c.Op {
	case "send":
		return send(path, then())
	case "out":
		return send("/user/outside", text(c.Path))
	case "askout":
		return abi.AppendAsk(nil, 0, "/user/outside", 10+c.Key, uint64(max(c.D, time.Millisecond)), nil, text("q"))
	case "serve":
		return abi.AppendAsk(nil, 0, "/system/s"+strconv.FormatUint(1+c.Key%2, 10), 10+c.Key, uint64(max(c.D, time.Millisecond)), nil, text("q"))
	case "ask":
		return abi.AppendAsk(nil, 0, path, 10+c.Key, uint64(max(c.D, time.Millisecond)), nil, script(rec(recAdd, 1), rec(recReport, 0)))
	case "identify":
		return abi.AppendIdentify(nil, path, 20+c.Key, uint64(max(c.D, time.Millisecond)))
	case "stop":
		return abi.AppendStop(nil, 0, path)
	case "stopself":
		return abi.AppendStop(nil, 0, "/user/"+strings.TrimPrefix(path, "/user/"))
	case "watch":
		if c.D == time.Hour && !strings.HasPrefix(path, ".") {
			path = "+" + path
		}
		return abi.AppendWatch(nil, 0, path)
	case "unwatch":
		return abi.AppendUnwatch(nil, 0, path)
	case "timer":
		return abi.AppendTimer(nil, c.Key, uint64(c.D), 0, then())
	case "repeat":
		return abi.AppendTimer(nil, c.Key, uint64(c.D), uint64(max(c.D, 7*time.Millisecond)), then())
	case "cancel":
		return abi.AppendCancel(nil, c.Key)
	case "receive":
		// Not due together with a timer: a checkpoint does not say which of the two was set first.
		return abi.AppendReceiveTimeout(nil, uint64(max(c.D, time.Millisecond))-1)
	case "stash":
		return abi.AppendStash(nil)
	case "unstash":
		return abi.AppendUnstash(nil)
	case "fail":
		return abi.AppendFail(nil, "told to")
	case "unhandled":
		return abi.AppendUnhandled(nil)
	case "decide":
		return abi.AppendDecide(nil, uint8(c.Key)+uint8(c.D%3))
	case "reset":
		return abi.AppendResetBackoff(nil)
	case "cancelask":
		return abi.AppendCancelAsk(nil, 10+c.Key)
	case "reply":
		return reply(1)
	case "noreply":
		return reply(2)
	case "forward":
		return abi.AppendForward(nil, 0, path)
	case "spawn":
		if s == nil {
			return nil
		}
		ref := abi.ChildRef(s.key, 0, s.n)
		s.n++
		args := []byte(script())
		if c.Then != nil {
			args = scriptOf(nil, c.Then)
		}
		return abi.AppendSpawn(nil, ref, "puppet", c.Name, args, optionsOf(c.Options))
	}
	panic(c.Op)
}

// lived is a system of a history.
type lived struct {
	*host.System
	store *Store
	fs    *crashfs.FS
	clock *host.VirtualClock
	props Props
	seen  []string // outside
	long  bool     // something goes on without end
	tight bool     // there may be no room for those of props

	change func(*Options) // of its store; nil: nothing
}

var historySecret = host.Secret{5}

func live(t testing.TB, fs *crashfs.FS, clock *host.VirtualClock, props Props, late bool) (*lived, error) {
	w, x, err := liveAgain(t, fs, clock, props, late)
	if err == nil {
		x.Release()
	}
	return w, err
}

// liveAgain is a system of a history that is about to be released.
func liveAgain(t testing.TB, fs *crashfs.FS, clock *host.VirtualClock, props Props, late bool) (*lived, *Starting, error) {
	w := &lived{fs: fs, clock: clock, props: props}
	x, err := w.begin(t, late)
	if err != nil {
		return nil, nil, err
	}
	return w, x, nil
}

// begin has it begin, or come back.
func (w *lived) begin(t testing.TB, late bool) (*Starting, error) {
	props := w.props
	random := rand.NewChaCha8([32]byte{1})
	options := Options{Dir: "store", FS: w.fs, Lazy: late, Clock: w.clock, space: someSpace(), Sim: &Sim{Rand: random, Segment: 64 << 10, Secret: historySecret}}
	if w.change != nil {
		w.change(&options)
	}
	store, err := Open(options)
	if err != nil {
		return nil, err
	}
	cfg := host.NewConfig("w").WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)).WithManual().WithClock(w.clock).WithSpawnOptions(readOptions).WithStopGrace(time.Minute)
	x, err := store.Prepare(cfg, props)
	if err != nil {
		return nil, errorsOf(err, store.Close())
	}
	w.System, w.store = x.System(), store
	outside := host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage {
			w.seen = append(w.seen, fmt.Sprintf("%x", []byte(m.Payload)))
			if m.Correlation != 0 {
				return ctx.Reply(1)
			}
		}
		return nil
	})
	if _, err := w.Spawn("outside", outside); err != nil {
		return nil, err
	}
	for _, name := range []string{"s1", "s2"} {
		if _, err := w.SpawnService(name, outside); err != nil {
			return nil, err
		}
	}
	back, err := x.Recover()
	if err != nil {
		x.Abandon()
		w.end(t)
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !back[name] {
			if _, err := w.Spawn(name, props[name]); err != nil && !w.tight {
				x.Abandon()
				w.end(t)
				return nil, err
			}
		}
	}
	return x, nil
}

func (w *lived) rest() {
	for n := 0; w.Step() || w.store.Work(); n++ {
		if n > 5000 {
			w.long = true
			return
		}
	}
}

func (w *lived) end(t testing.TB) {
	if w.long {
		port.Freeze(w.System)
	}
	_ = w.Close(t.Context())
	_ = w.store.Close()
}

func (w *lived) look() map[string]string {
	all := map[string]string{}
	for _, i := range w.View().AppendInfo(nil) {
		if p := i.Ref.Path(); strings.HasPrefix(p, "/user/") && p != "/user/outside" {
			if ref, err := w.Lookup(p); err == nil {
				all[p] = fmt.Sprintf("%+v", *port.Look(w.System, ref.UID()))
			}
		}
	}
	return all
}

// spawner is what the actor at a path needs.
func (w *lived) spawner(ref host.Ref) *spawner {
	s := &spawner{}
	key := secret.Secret(historySecret)
	var keys secret.Keys
	s.key = keys.Child(&key, ref.UID())
	if x := port.Look(w.System, ref.UID()); x != nil && len(x.Saved) > 0 {
		if d, err := saved.Decode(x.Saved); err == nil {
			s.n = d.Spawned
		}
	}
	return s
}

// come has something happen.
func (w *lived) come(h happening) {
	ref, err := w.Lookup(full(h.Path))
	o := w.Operate()
	switch {
	case h.What == "pass":
		w.clock.Advance(h.D)
	case h.What == "again":
		for name := range w.props {
			if _, err := w.Lookup("/user/" + name); err != nil && strings.HasPrefix(h.Path, name) {
				_, _ = w.Spawn(name, w.props[name])
			}
		}
	case err != nil || h.Path == "outside":
	case h.What == "tell":
		_ = w.Tell(ref, host.Raw(scriptOf(w.spawner(ref), h.Acts)))
	case h.What == "stop":
		w.Stop(ref)
	case h.What == "pause":
		_ = o.Pause(ref, false)
	case h.What == "pauseall":
		_ = o.Pause(ref, true)
	case h.What == "unpause":
		_ = o.Unpause(ref, false)
	case h.What == "unpauseall":
		_ = o.Unpause(ref, true)
	case h.What == "killactor":
		_ = o.Kill(ref)
	case h.What == "crash":
		_ = o.Crash(ref, 0, "")
	case h.What == "restart":
		_ = o.Restart(ref)
	case h.What == "decide":
		_ = o.Decide(ref, supervision.Directive(h.N))
	case h.What == "resetbackoff":
		_ = o.ResetBackoff(ref)
	}
}

var happenings = []string{
	"tell", "tell", "tell", "tell", "tell", "tell", "tell", "tell", "pass", "pass", "pass", "again", "stop", "pause", "pauseall", "unpause", "unpauseall", "killactor", "crash", "crash",
	"restart", "decide", "decide", "resetbackoff",
	"checkpoint", "checkpoint", "compact", "kill", "kill", "kill",
}

// Whatever happens to durable actors, a system that is killed at rest again and again is the same as the one that never stopped.
func TestHistories(t *testing.T) {
	var kills, endless, compared int
	rapid.Check(t, func(rt *rapid.T) {
		roles, all := drawHistory(rt, happenings)
		props := Props{}
		for _, r := range roles {
			props[r.Name] = r.props(t)
		}
		start := time.Unix(1_700_000_000, 0)
		one, err := live(t, crashfs.New(), host.NewVirtualClock(start), props, false)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		defer func() { one.end(t) }()
		two, err := live(t, crashfs.New(), host.NewVirtualClock(start), props, true)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		defer func() { two.end(t) }()
		var done []string
		story := func() string {
			var text strings.Builder
			for _, r := range roles {
				fmt.Fprintf(&text, "%+v\n", r)
			}
			return text.String() + strings.Join(done, "\n")
		}
		compare := func(when string) {
			compared++
			same(rt, when, one.look(), two.look(), story)
			if !slices.Equal(one.seen, two.seen) {
				rt.Errorf("%s: outside has seen\n%v\nand of the one that was killed\n%v", when, one.seen, two.seen)
			}
			if rt.Failed() {
				rt.Fatalf("%s", story())
			}
		}
		one.rest()
		two.rest()
		for _, h := range all {
			if one.long || two.long {
				endless++
				return
			}
			done = append(done, h.String())
			switch h.What {
			case "checkpoint":
				if err := two.store.Checkpoint(t.Context()); err != nil {
					rt.Logf("checkpoint: %v", err)
				}
			case "compact":
				if err := two.store.Compact(t.Context()); err != nil {
					rt.Logf("compact: %v", err)
				}
			case "kill":
				kills++
				fs, seen, clock := two.fs.Copy(), two.seen, two.clock
				two.end(t)
				clock = host.NewVirtualClock(clock.Now())
				back, err := live(t, fs, clock, props, h.Late)
				if err != nil {
					rt.Fatalf("it does not start: %v\n%s", err, story())
				}
				two = back
				two.seen = append(seen, two.seen...)
				two.rest()
				for _, name := range slices.Sorted(maps.Keys(props)) { // as a start does
					if _, err := one.Lookup("/user/" + name); err != nil {
						_, _ = one.Spawn(name, props[name])
					}
				}
				one.rest()
				if one.long || two.long {
					continue
				}
				compare("killed")
				continue
			default:
				one.come(h)
				two.come(h)
			}
			one.rest()
			two.rest()
		}
		if one.long || two.long {
			endless++
			return
		}
		compare("at the end")
	})
	t.Logf("%d kills, %d compared, %d without end", kills, compared, endless)
}

// around is a text around its first difference from another.
func around(a, b string) string {
	if a == "" {
		return "not there"
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("(from byte %d of %d) ...%s ... %s", i, len(a), a[max(0, i-80):min(len(a), i+200)], a[max(0, len(a)-400):])
}

// A process that dies at any time, also by a loss of power that tears what was not synced, comes back as the same system, early or late.
// What it has said is there, and two actors that nothing else befalls have counted the same.
func TestHistoriesThatAreCut(t *testing.T) {
	image := historyImage(t)
	var cuts, endless, counted int
	kinds := append(slices.DeleteFunc(slices.Clone(happenings), func(s string) bool { return s == "kill" }), "cut", "cut", "cut", "cut", "count", "count", "work", "work")
	counts := script(rec(recAdd, 1), rec(0, 0, send("/user/c1", add)))
	rapid.Check(t, func(rt *rapid.T) {
		roles, all := drawHistory(rt, kinds)
		props := Props{"c0": puppet(image), "c1": puppet(image)}
		for _, r := range roles {
			props[r.Name] = r.props(t)
		}
		w, err := live(t, crashfs.New(), host.NewVirtualClock(time.Unix(1_700_000_000, 0)), props, true)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		defer func() { w.end(t) }()
		var done []string
		story := func() string {
			var text strings.Builder
			for _, r := range roles {
				fmt.Fprintf(&text, "%+v\n", r)
			}
			return text.String() + strings.Join(done, "\n")
		}
		said := 0
		dice := rand.New(rand.NewPCG(uint64(len(all)), rapid.Uint64().Draw(rt, "dice")))
		w.rest()
		for _, h := range all {
			done = append(done, h.String())
			switch h.What {
			case "checkpoint":
				_ = w.store.Checkpoint(t.Context())
			case "compact":
				_ = w.store.Compact(t.Context())
			case "work":
				w.store.Work()
			case "count":
				if ref, err := w.Lookup("/user/c0"); err == nil {
					_ = w.Tell(ref, host.Raw(counts))
				}
			case "cut":
				cuts++
				for range h.N {
					if !w.Step() {
						break
					}
					if h.N%3 == 0 {
						w.store.Work()
					}
				}
				fs := w.fs.Copy() // killed: all that was written is there
				if h.N%2 == 0 {   // the power fails
					fs = w.fs.After(w.fs.Done(), dice)
				}
				now := w.clock.Now()
				port.Freeze(w.System)
				w.end(t)
				var looks [2]map[string]string
				var back [2]*lived
				for i, late := range []bool{!h.Late, h.Late} {
					x, s, err := liveAgain(t, fs.Copy(), host.NewVirtualClock(now), props, late)
					if err != nil {
						rt.Fatalf("it does not start: %v\n%s", err, story())
					}
					looks[i] = x.look()
					s.Release()
					x.rest()
					back[i] = x
				}
				same(rt, "when it is back", looks[0], looks[1], story)
				if !back[0].long && !back[1].long {
					same(rt, "when it has gone on", back[0].look(), back[1].look(), story)
				}
				back[0].end(t)
				w = back[1]
			default:
				w.come(h)
			}
			if w.long {
				endless++
				return
			}
			if dice.IntN(3) > 0 {
				w.rest()
			}
			if n, ok := w.counted("c0"); ok && !w.long {
				m, _ := w.counted("c1")
				if n != m || n < said {
					rt.Fatalf("c0 has counted %d, c1 %d, and it has said %d\n%s", n, m, said, story())
				}
				said, counted = n, counted+1
			}
		}
	})
	t.Logf("%d cuts, %d counted, %d without end", cuts, counted, endless)
}

// counted is what an actor answers.
func (w *lived) counted(name string) (n int, ok bool) {
	ref, err := w.Lookup("/user/" + name)
	if err != nil {
		return 0, false
	}
	p, err := w.Request(ref, script(rec(recReport, 0)))
	if err != nil {
		return 0, false
	}
	defer p.Cancel()
	w.rest()
	select {
	case m := <-p.Answer():
		if m.Err() == nil {
			return int(m.Payload[0]), true
		}
	default:
	}
	return 0, false
}

// same compares what there is of two systems.
func same(rt *rapid.T, when string, a, b map[string]string, story func() string) {
	for _, p := range slices.Sorted(maps.Keys(a)) {
		if a[p] != b[p] {
			rt.Errorf("%s: %s is\n%s\nand in the other one\n%s", when, p, around(a[p], b[p]), around(b[p], a[p]))
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			rt.Errorf("%s: %s is only there in the other one", when, p)
		}
	}
	if rt.Failed() {
		rt.Fatalf("%s", story())
	}
}
