//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

var (
	faults    = flag.Int("faults", 6, "how many faults TestFaults causes, in `make thorough` and `make cluster-faults`")
	faultSeed = flag.Uint64("faults-seed", 1, "the seed of what happens to whom")
)

// fault is what happens to a node of three.
type fault struct {
	name string
	do   func(p *process)
	far  bool // only to the one that has proxies
	down bool // it has to be started again
}

// TestFaults kills, stops, parts and heals nodes under load. Each key is a register with unique writes, whose history, fault by fault, has
// to be one that a single register could have had which begins empty in each of its lives, and of which no life comes back.
func TestFaults(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("three processes for minutes: make thorough, or make cluster-faults")
	}
	f, far, cut := partable(t)
	f.start(f.nodes...)
	keys := someKeys(everywhere)
	f.settle(keys)
	all := []fault{
		{name: "kill", down: true, do: func(p *process) { p.kill() }},
		{name: "stop below the lease", do: func(p *process) { stopFor(p, lease/2) }},
		{name: "stop beyond the lease", do: func(p *process) { stopFor(p, lease*3/2) }},
		{name: "part below the lease", far: true, do: func(*process) { cut(true); time.Sleep(lease / 2); cut(false) }},
		{name: "part beyond the lease", far: true, do: func(*process) { cut(true); time.Sleep(lease * 3 / 2); cut(false) }},
		{name: "kill while parted", far: true, down: true, do: func(p *process) { cut(true); time.Sleep(lease / 4); p.kill(); cut(false) }},
	}
	random := rand.New(rand.NewPCG(*faultSeed, 24))
	type figures struct {
		n    int
		most time.Duration
	}
	seen := map[string]*figures{}
	total, unknown, windows, undecided := 0, 0, 0, 0
	end, bounded := t.Deadline()
	done := 0
	for ; done < *faults && !t.Failed() && (!bounded || time.Until(end) > 2*time.Minute); done++ {
		x := all[random.IntN(len(all))]
		victim := f.nodes[random.IntN(len(f.nodes))]
		if x.far {
			victim = far
		}
		r := &registers{f: f, keys: keys, of: map[string][]porcupine.Operation{}}
		ctx, stop := context.WithCancel(context.Background())
		wait := r.load(ctx, random.Uint64())
		time.Sleep(300 * time.Millisecond)
		began := time.Now()
		x.do(victim)
		if x.down {
			f.start(victim)
		}
		for _, p := range f.nodes {
			for _, key := range keys {
				r.until(p, key)
			}
		}
		took := time.Since(began)
		stop()
		wait()
		for _, p := range f.nodes { // where the next one begins
			for _, key := range keys {
				r.until(p, key)
			}
		}
		wrong, open := r.check()
		total, unknown, windows, undecided = total+r.answered, unknown+r.unknown, windows+len(keys), undecided+open
		for _, w := range append(wrong, f.seen.overlaps()...) {
			t.Errorf("fault %d of seed %d, %s of %s: %s", done, *faultSeed, x.name, victim.name, w)
		}
		if seen[x.name] == nil {
			seen[x.name] = &figures{}
		}
		seen[x.name].n++
		seen[x.name].most = max(seen[x.name].most, took)
		t.Logf("%3d %-22s %s: all keys answer on all nodes after %v; %d answered, %d not", done, x.name, victim.name, took.Round(10*time.Millisecond), r.answered, r.unknown)
		f.seen = history{}
	}
	for _, x := range all {
		if s := seen[x.name]; s != nil {
			t.Logf("%-22s %3d times, at most %v until all keys answered on all nodes", x.name, s.n, s.most.Round(10*time.Millisecond))
		}
	}
	t.Logf("%d faults, %d questions answered, %d without an answer, %d histories, %d of them too long to decide", done, total, unknown, windows, undecided)
	if done == 0 || total == 0 || unknown == 0 && done > 5 {
		t.Error("nothing was tested")
	}
}

// stopFor stops a process for a while.
func stopFor(p *process, d time.Duration) {
	p.signal(syscall.SIGSTOP)
	time.Sleep(d)
	p.signal(syscall.SIGCONT)
}

// registers are the histories of keys during one fault.
type registers struct {
	f    *field
	keys []string
	last atomic.Int64 // that was written

	mu                sync.Mutex
	of                map[string][]porcupine.Operation
	answered, unknown int
}

// asked is a question to a register: 0 reads.
type asked struct{ value int64 }

// answer is what it said; known is false if it has not.
type answer struct {
	known  bool
	life   uint64
	before int64
}

// ask asks a register by a node, and notes it.
func (r *registers) ask(p *process, client int, key string, value int64) bool {
	var message any = "read"
	if value != 0 {
		message = value
	}
	began := time.Since(r.f.began)
	a, l := p.ask(key, message)
	o := porcupine.Operation{ClientId: client, Input: asked{value}, Call: began.Nanoseconds(), Return: time.Since(r.f.began).Nanoseconds(), Output: answer{a.Kind == "reply", l.id, l.before}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Kind == "reply" {
		r.answered++
	} else {
		r.unknown++
		o.Return = 1 << 62 // it may be done at any time after
		if value == 0 {
			return false // a read that nobody has seen
		}
	}
	r.of[key] = append(r.of[key], o)
	return a.Kind == "reply"
}

// until asks a register until it answers.
func (r *registers) until(p *process, key string) {
	for began := time.Now(); !r.ask(p, 1000, key, 0); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			r.f.t.Errorf("%s does not answer by %s", key, p.name)
			return
		}
	}
}

// load reads and writes by all nodes until the context ends.
func (r *registers) load(ctx context.Context, seed uint64) (wait func()) {
	var over sync.WaitGroup
	for i, p := range r.f.nodes {
		for c := range 2 {
			over.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(2*i+c)))
				for ctx.Err() == nil {
					value := int64(0)
					if random.IntN(3) > 0 {
						value = r.last.Add(1)
					}
					if !r.ask(p, 2*i+c, r.keys[random.IntN(len(r.keys))], value) {
						time.Sleep(20 * time.Millisecond)
					}
					time.Sleep(time.Duration(1+random.IntN(10)) * time.Millisecond)
				}
			})
		}
	}
	return over.Wait
}

// check says which histories no register could have had, and how many could not be decided.
func (r *registers) check() (wrong []string, open int) {
	for _, key := range r.keys {
		switch porcupine.CheckOperationsTimeout(registerModel, r.of[key], 20*time.Second) {
		case porcupine.Illegal:
			text := ""
			for _, o := range r.of[key] {
				text += fmt.Sprintf("\n  client %d from %.3f s to %.3f s: %+v gives %+v", o.ClientId, float64(o.Call)/1e9, min(float64(o.Return)/1e9, 1e9), o.Input, o.Output)
			}
			wrong = append(wrong, key+" is no register:"+text)
		case porcupine.Unknown:
			open++
		}
	}
	return wrong, open
}

// registerState is a register: the life that it is in, its value, and the lives that are over. A life of 0 is one that has said nothing yet; any is
// whatever was there when the history began.
type registerState struct {
	life  uint64
	value int64
	any   bool
	over  string
}

func (s registerState) was(life uint64) bool {
	return strings.Contains(s.over, fmt.Sprintf("<%x>", life))
}

func (s registerState) ended() string {
	if s.life == 0 {
		return s.over
	}
	return s.over + fmt.Sprintf("<%x>", s.life)
}

// registerModel is a register that may begin anew, empty, at any time.
var registerModel = (&porcupine.NondeterministicModel{
	Init:  func() []any { return []any{registerState{any: true}} },
	Step:  func(s, in, out any) []any { return s.(registerState).step(in.(asked), out.(answer)) },
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// step are the states in which a register can be after a question.
func (s registerState) step(in asked, out answer) (next []any) {
	after := func(value int64) int64 {
		if in.value != 0 {
			return in.value
		}
		return value
	}
	if !out.known {
		return []any{s, registerState{life: s.life, value: after(s.value), any: s.any && in.value == 0, over: s.over}, registerState{value: after(0), over: s.ended()}}
	}
	if s.any || s.life == out.life && s.value == out.before || s.life == 0 && !s.was(out.life) && s.value == out.before {
		next = append(next, registerState{life: out.life, value: after(out.before), over: s.over})
	}
	if !s.any && s.life != out.life && !s.was(out.life) && out.before == 0 {
		next = append(next, registerState{life: out.life, value: after(0), over: s.ended()})
	}
	return next
}

// The model finds what it is for.
func TestTheModelOfRegisters(t *testing.T) {
	const never = 1 << 62
	op := func(call, end int64, value int64, a answer) porcupine.Operation {
		return porcupine.Operation{Input: asked{value}, Call: call, Return: end, Output: a}
	}
	for name, x := range map[string]struct {
		all []porcupine.Operation
		ok  bool
	}{
		"one life":                {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(3, 4, 0, answer{true, 7, 5})}, true},
		"a write is lost":         {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(3, 4, 0, answer{true, 7, 0})}, false},
		"a new life":              {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(3, 4, 0, answer{true, 8, 0})}, true},
		"a new life that knows":   {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(3, 4, 0, answer{true, 8, 5})}, false},
		"a life that comes back":  {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(3, 4, 0, answer{true, 8, 0}), op(5, 6, 0, answer{true, 7, 5})}, false},
		"a write without answer":  {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(2, never, 6, answer{}), op(3, 4, 0, answer{true, 7, 5}), op(5, 6, 0, answer{true, 7, 6})}, true},
		"it is not done twice":    {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(2, never, 6, answer{}), op(3, 4, 0, answer{true, 7, 6}), op(5, 6, 5, answer{true, 7, 6}), op(7, 8, 0, answer{true, 7, 6})}, false},
		"it begins a life":        {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(2, never, 6, answer{}), op(3, 4, 0, answer{true, 8, 6})}, true},
		"two lives write by turn": {[]porcupine.Operation{op(1, 2, 5, answer{true, 7, 0}), op(3, 4, 6, answer{true, 8, 0}), op(5, 6, 8, answer{true, 7, 5})}, false},
	} {
		if got := porcupine.CheckOperations(registerModel, x.all); got != x.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}
