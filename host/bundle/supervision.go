package bundle

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

func (c *checker) supervision(v view) supervision.Strategy {
	s := supervision.Default()
	kindName, window, within := v.text("strategy"), v.text("window"), v.duration("within", 0)
	if k, ok := supervision.ParseKind(kindName); ok {
		s = s.WithKind(k)
	}
	s = s.WithMaxRestarts(v.whole("max-restarts", supervision.Unlimited), within)
	s = s.WithSliding(window == "sliding").WithKeepChildren(v.flag("keep-children", false))
	if window == "sliding" && within == 0 {
		c.At(v.get("window").n, "supervision.window: a sliding window needs its length, within")
	}
	var rules []supervision.Rule
	for _, item := range v.items("decide") {
		rules = append(rules, c.rule(item))
	}
	if v.has("decide") {
		s = s.WithRules(rules...)
	}
	if d, ok := supervision.ParseDirective(v.text("otherwise")); ok {
		s = s.WithOtherwise(d)
	}
	if d, ok := supervision.ParseDirective(v.text("exceeded")); ok {
		s = s.WithExceeded(d)
	}
	down, _ := supervision.ParseShutdown(v.text("shutdown"))
	s = s.WithShared(v.flag("shared-window", false)).WithShutdown(down)
	if b := v.object("backoff"); b.given() {
		s = s.WithBackoff(c.backoff(b))
	}
	return s
}

func (c *checker) rule(v view) supervision.Rule {
	r := supervision.Rule{Reason: v.text("reason"), Type: v.text("type")}
	r.Directive, _ = supervision.ParseDirective(v.text("directive"))
	names := v.texts("kinds")
	if k := v.text("kind"); k != "" {
		names = append(names, k)
	}
	for _, name := range names {
		k, _ := abi.ParseFailureKind(name)
		r.Kinds = append(r.Kinds, k)
	}
	return r
}

// Defaults of a backoff: those of Akka's sample, with actor-ts's jitter.
const (
	defaultBackoffMin    = 100 * time.Millisecond
	defaultBackoffMax    = 10 * time.Second
	defaultBackoffSpread = 0.2
)

// curveKeys are the keys that only some curves have.
var curveKeys = map[string][]string{
	"factor": {"exponential"}, "step": {"linear"}, "delays": {"table"}, "ceiling": {"slotted"}, "stay": {"slotted"},
	"num": {"zaqar-linear", "zaqar-linear-reach", "zaqar-arithmetic", "zaqar-geometric", "zaqar-exponential"},
}

func (c *checker) backoff(v view) supervision.Backoff {
	spec := backoff.Spec{
		Curve: v.text("curve"), Min: v.duration("min", defaultBackoffMin), Max: v.duration("max", 0),
		Factor: v.number("factor", 0), Step: v.duration("step", 0), Num: v.whole("num", 0),
		Ceiling: v.whole("ceiling", 0), Stay: v.flag("stay", false),
		Jitter: v.text("jitter"), Spread: v.number("spread", 0), HardCap: v.flag("hard-cap", false),
	}
	spec.Curve = cmp.Or(spec.Curve, "exponential")
	for _, key := range slices.Sorted(maps.Keys(curveKeys)) {
		if x := v.get(key); x.given() && !slices.Contains(curveKeys[key], spec.Curve) {
			c.At(x.n, "supervision.backoff.%s needs curve: %s", key, strings.Join(curveKeys[key], ", "))
		}
	}
	random := spec.Curve == "slotted" || spec.Curve == "decorrelated"
	spreads := spec.Jitter == "" || spec.Jitter == "two-sided" || spec.Jitter == "additive"
	switch spread := v.get("spread"); {
	case spread.given() && !spreads:
		c.At(spread.n, "supervision.backoff.spread needs jitter: two-sided or additive")
	case !spread.given() && spreads && !random:
		spec.Spread = defaultBackoffSpread
	}
	switch {
	case spec.Curve == "table":
		if x := v.get("min"); x.given() {
			c.At(x.n, "supervision.backoff.min has no meaning for curve: table; its first delay is the first of delays")
		}
	case !v.has("max") && spec.Curve != "slotted":
		spec.Max = max(defaultBackoffMax, spec.Min)
	}
	for _, d := range v.texts("delays") {
		delay, _ := grammar.ParseDuration(d)
		spec.Delays = append(spec.Delays, delay)
	}
	c.words.delays(&spec)
	b := supervision.Backoff{ResetAfter: v.duration("reset-after", 0), MaxFailures: v.whole("max-failures", 0)}
	policy, err := spec.Policy()
	if err != nil {
		where := v.n
		var p *backoff.ParameterError
		if errors.As(err, &p) && v.has(p.Name) {
			where = v.get(p.Name).n
		}
		c.At(where, "supervision.%s", strings.Replace(err.Error(), "backoff: ", "backoff.", 1))
	}
	b.Policy = policy
	switch v.text("reset") {
	case "never":
		b.Reset = supervision.ResetNever
	case "manual":
		b.Reset = supervision.ResetManual
	}
	if v.has("reset-after") && b.Reset != supervision.ResetAfterStable {
		c.At(v.get("reset-after").n, "supervision.backoff.reset-after needs reset: after-stable")
	}
	b.GiveUp, _ = supervision.ParseGiveUp(v.text("give-up"))
	b.Meanwhile, _ = supervision.ParseMeanwhile(v.text("meanwhile"))
	switch v.text("on") {
	case "failure":
		b.On = supervision.OnFailure
	case "stop":
		b.On = supervision.OnStop
	}
	b.Reply, b.Stash = v.text("reply"), int(v.count("stash", 0))
	b.Grace, b.Overtake = v.duration("grace", 0), v.flag("overtake", false)
	for _, key := range []struct {
		name, goes string
		with       bool
	}{
		{"reply", "meanwhile: reply", b.Meanwhile == supervision.MeanwhileReply},
		{"stash", "meanwhile: keep", b.Meanwhile == supervision.MeanwhileKeep},
		{"overtake", "a grace", b.Grace > 0},
	} {
		if v.has(key.name) && !key.with {
			c.At(v.get(key.name).n, "supervision.backoff.%s needs %s", key.name, key.goes)
		}
	}
	return b
}

// crashed reads crashed-message.
func crashed(text string) host.CrashedMessage {
	switch n, err := strconv.Atoi(text); {
	case text == "dead-letter":
		return host.DeadLetterCrashed()
	case err == nil:
		return host.RedeliverCrashed(n)
	}
	return host.DropCrashed()
}

// defaultResendSlot is the unit of a resender's wait.
const defaultResendSlot = 10 * time.Millisecond

// resend reads the options of an actor's resender; nil if it has none.
func (c *checker) resend(v view) *host.Resend {
	policy, err := backoff.Spec{
		Curve: "slotted", Min: v.duration("slot", defaultResendSlot), Max: v.duration("max", 0),
		Ceiling: v.whole("ceiling", 10), Stay: v.flag("stay", true),
	}.Policy()
	if err != nil {
		c.At(v.n, "resend: %s", strings.NewReplacer("backoff: ", "", "min", "slot").Replace(err.Error()))
	}
	r := &host.Resend{
		Policy: policy, Keep: int(v.count("keep", 0)), Attempts: v.whole("attempts", 0),
		MaxCrashes: v.whole("max-crashes", 0), Patience: v.duration("patience", 0),
	}
	if !v.given() {
		return nil
	}
	return r
}
