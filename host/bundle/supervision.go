package bundle

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"go.yaml.in/yaml/v3"
)

func (c *checker) supervision(n *yaml.Node) supervision.Strategy {
	s := supervision.Default()
	if n == nil {
		return s
	}
	if k, ok := supervision.ParseKind(str(n, "strategy")); ok {
		s = s.WithKind(k)
	}
	s = s.WithMaxRestarts(whole(n, "max-restarts", supervision.Unlimited), durationOf(n, "within", 0))
	s = s.WithSliding(str(n, "window") == "sliding").WithKeepChildren(flag(n, "keep-children", false))
	if str(n, "window") == "sliding" && durationOf(n, "within", 0) == 0 {
		c.at(at(n, "window"), "supervision.window: a sliding window needs its length, within")
	}
	if list := at(n, "decide"); list != nil {
		var rules []supervision.Rule
		for _, item := range list.Content {
			rules = append(rules, c.rule(item))
		}
		s = s.WithRules(rules...)
	}
	if d, ok := supervision.ParseDirective(str(n, "otherwise")); ok {
		s = s.WithOtherwise(d)
	}
	if d, ok := supervision.ParseDirective(str(n, "exceeded")); ok {
		s = s.WithExceeded(d)
	}
	down, _ := supervision.ParseShutdown(str(n, "shutdown"))
	s = s.WithShared(flag(n, "shared-window", false)).WithShutdown(down)
	if b := at(n, "backoff"); b != nil {
		s = s.WithBackoff(c.backoff(b))
	}
	return s
}

func (c *checker) rule(n *yaml.Node) supervision.Rule {
	r := supervision.Rule{Reason: str(n, "reason"), Type: str(n, "type")}
	r.Directive, _ = supervision.ParseDirective(str(n, "directive"))
	names := strs(n, "kinds")
	if k := str(n, "kind"); k != "" {
		names = append(names, k)
	}
	for _, name := range names {
		k, _ := abi.ParseFailureKind(name)
		r.Kinds = append(r.Kinds, k)
	}
	return r
}

// defaults of a backoff that says nothing: Akka's sample with actor-ts's jitter.
const (
	defaultBackoffMin = 100 * time.Millisecond
	defaultBackoffMax = 10 * time.Second
)

func (c *checker) backoff(n *yaml.Node) supervision.Backoff {
	spec := backoff.Spec{
		Curve: str(n, "curve"), Min: durationOf(n, "min", defaultBackoffMin), Max: durationOf(n, "max", 0),
		Factor: real(n, "factor"), Step: durationOf(n, "step", 0), Num: whole(n, "num", 0),
		Ceiling: whole(n, "ceiling", 0), Stay: flag(n, "stay", false),
		Jitter: str(n, "jitter"), Spread: real(n, "spread"), HardCap: flag(n, "hard-cap", false),
	}
	if at(n, "max") == nil && spec.Curve != "slotted" {
		spec.Max = max(defaultBackoffMax, spec.Min)
	}
	for _, d := range strs(n, "delays") {
		delay, _ := parseDuration(d)
		spec.Delays = append(spec.Delays, delay)
	}
	b := supervision.Backoff{ResetAfter: durationOf(n, "reset-after", 0), MaxFailures: whole(n, "max-failures", 0)}
	policy, err := spec.Policy()
	if err != nil {
		where := n
		var p *backoff.ParameterError
		if errors.As(err, &p) && at(n, p.Name) != nil {
			where = at(n, p.Name)
		}
		c.at(where, "supervision.%s", strings.Replace(err.Error(), "backoff: ", "backoff.", 1))
	}
	b.Policy = policy
	switch str(n, "reset") {
	case "never":
		b.Reset = supervision.ResetNever
	case "manual":
		b.Reset = supervision.ResetManual
	}
	if at(n, "reset-after") != nil && b.Reset != supervision.ResetAfterStable {
		c.at(at(n, "reset-after"), "supervision.backoff.reset-after goes with reset: after-stable")
	}
	b.GiveUp, _ = supervision.ParseGiveUp(str(n, "give-up"))
	b.Meanwhile, _ = supervision.ParseMeanwhile(str(n, "meanwhile"))
	switch str(n, "on") {
	case "failure":
		b.On = supervision.OnFailure
	case "stop":
		b.On = supervision.OnStop
	}
	b.Reply, b.Stash = str(n, "reply"), int(countOf(n, "stash", 0))
	b.Grace, b.Overtake = durationOf(n, "grace", 0), flag(n, "overtake", false)
	for _, key := range []struct {
		name, goes string
		with       bool
	}{
		{"reply", "meanwhile: reply", b.Meanwhile == supervision.MeanwhileReply},
		{"stash", "meanwhile: keep", b.Meanwhile == supervision.MeanwhileKeep},
		{"overtake", "a grace", b.Grace > 0},
	} {
		if at(n, key.name) != nil && !key.with {
			c.at(at(n, key.name), "supervision.backoff.%s goes with %s", key.name, key.goes)
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

// resend reads how messages are kept for an actor; nil for none.
func (c *checker) resend(n *yaml.Node) *host.Resend {
	if n == nil {
		return nil
	}
	policy, err := backoff.Spec{
		Curve: "slotted", Min: durationOf(n, "slot", 10*time.Millisecond), Max: durationOf(n, "max", 0),
		Ceiling: whole(n, "ceiling", 10), Stay: flag(n, "stay", true),
	}.Policy()
	if err != nil {
		c.at(n, "resend: %s", strings.NewReplacer("backoff: ", "", "min", "slot").Replace(err.Error()))
	}
	return &host.Resend{
		Policy: policy, Keep: int(countOf(n, "keep", 0)), Attempts: whole(n, "attempts", 0),
		MaxCrashes: whole(n, "max-crashes", 0), Patience: durationOf(n, "patience", 0),
	}
}

// SpawnOptions reads the options that a guest gives to a spawn: CBOR, with the keys
// of a manifest's actor. It is what host.Config.WithSpawnOptions wants.
func SpawnOptions(options []byte) (host.SpawnOptions, error) {
	var v map[string]any
	var o host.SpawnOptions
	if err := (host.Message{Payload: options}).Decode(&v); err != nil {
		return o, err
	}
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return o, err
	}
	c := &checker{file: "options"}
	if c.structure(&n, 0) {
		c.check(&n, spawnShape, "options")
	}
	if len(c.found) == 0 {
		o.Lifetime, _ = supervision.ParseLifetime(str(&n, "lifetime"))
		o.Significant, o.Crashed = flag(&n, "significant", false), crashed(str(&n, "crashed-message"))
		o.Supervision = c.supervision(at(&n, "supervision"))
	}
	if len(c.found) > 0 {
		return host.SpawnOptions{}, errors.New(c.found[0].Message)
	}
	return o, nil
}
