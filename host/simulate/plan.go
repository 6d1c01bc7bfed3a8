package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Choices is the version of what a seed chooses. It changes when the same seed would give another plan.
const Choices = 4

// MaxCase bounds the file of a case, in bytes.
const MaxCase = 16 << 20

// Version names the host that a seed is valid for: the version of this module, and of the choices.
func Version() string {
	const path = "github.com/wasmactors/wasmactors"
	of := "(devel)"
	if i, ok := debug.ReadBuildInfo(); ok {
		if i.Main.Path == path && i.Main.Version != "" {
			of = i.Main.Version
		}
		for _, d := range i.Deps {
			if d.Path == path {
				of = d.Version
			}
		}
	}
	return fmt.Sprintf("%s/%d", of, Choices)
}

// Plan is all that is chosen of a run. It is a plain value, and immutable while it is used. As a file it outlives a changed
// choice of faults, if it is fixed (see [Plan.Fix]).
type Plan struct {
	Host     string            `json:"host"`     // Version
	Scenario string            `json:"scenario"` // what is run; "": there is only one
	Seed     uint64            `json:"seed"`
	Rates    map[Class]float64 `json:"rates,omitempty"` // of the classes that are on: the chance that an opportunity is one
	Prefer   Preference        `json:"prefer,omitempty"`
	Spell    int               `json:"spell"`           // messages that an actor handles in a row, at most
	Awake    int               `json:"awake,omitempty"` // guests with an instance; 0: no bound
	Fixed    bool              `json:"fixed,omitempty"` // the faults are those of Faults, and none is drawn
	Faults   []Fault           `json:"faults,omitempty"`
	Skip     []uint64          `json:"skip,omitempty"` // numbers of messages from outside that are not sent, ascending
}

// Fault is one fault of a run.
type Fault struct {
	Class Class  `json:"class"`
	Place string `json:"place"` // the actor's path; of a link both, as FROM>TO
	N     uint64 `json:"n"`     // of the opportunities of this class at this place, from 0
	Arg   uint64 `json:"arg,omitempty"`
}

// Preference is what the order of turns prefers.
type Preference string

// The preferences.
const (
	NoPreference Preference = ""
	OneStarves   Preference = "one-starves" // one actor waits for most of the time
	Newest       Preference = "newest"      // who has got work last goes first
	OneLast      Preference = "one-last"    // one actor runs only when nobody else has work
)

// NewPlan chooses the plan of a seed. Classes that are on need not occur in each of them.
func NewPlan(seed uint64, on []Class) Plan {
	p := Plan{Host: Version(), Seed: seed, Spell: 1 << (mix(seed, "spell", 0, 0) % 5)}
	for _, c := range classes {
		if !slices.Contains(on, c.name) {
			continue
		}
		h := mix(seed, string(c.name), 0, 1)
		if len(on) > 1 && h%2 == 0 { // a run with few classes gets further than one with all
			continue
		}
		low, high := math.Log(c.odds[0]), math.Log(c.odds[1])
		rate := math.Exp(low + share(mix(seed, string(c.name), 0, 2))*(high-low))
		switch c.name {
		case Order:
			p.Prefer = []Preference{OneStarves, Newest, OneLast}[mix(seed, "prefer", 0, 0)%3]
		case Asleep:
			p.Awake = 1 + int(mix(seed, "awake", 0, 0)%3)
		default:
			if p.Rates == nil {
				p.Rates = map[Class]float64{}
			}
			p.Rates[c.name] = rate
		}
	}
	return p
}

// Fix is the plan with the faults of a run that was drawn, as data: nothing of it is drawn any more.
func (p Plan) Fix(faults []Fault) Plan {
	p.Fixed, p.Faults, p.Rates = true, slices.Clone(faults), nil
	return p
}

// On are the classes of the plan that can occur, in order.
func (p Plan) On() []Class {
	return slices.DeleteFunc(Classes(), func(c Class) bool {
		switch c {
		case Order:
			return p.Prefer == NoPreference
		case Asleep:
			return p.Awake == 0
		}
		return p.Rates[c] == 0 && !slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Class == c })
	})
}

// Without is the plan without a class.
func (p Plan) Without(c Class) Plan {
	switch c {
	case Order:
		p.Prefer = NoPreference
	case Asleep:
		p.Awake = 0
	}
	rates := map[Class]float64{}
	for k, v := range p.Rates {
		if k != c {
			rates[k] = v
		}
	}
	p.Rates = rates
	p.Faults = slices.DeleteFunc(slices.Clone(p.Faults), func(f Fault) bool { return f.Class == c })
	return p
}

// Save writes the plan to a file, for its owner alone.
func (p *Plan) Save(path string) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return regular.Replace(path, append(data, '\n'), 0o600) // the folder may have a link of that name, which came with a bundle
}

// ParsePlan reads the data of a file that Save has written.
func ParsePlan(data []byte) (Plan, error) {
	var p Plan
	if len(data) > MaxCase {
		return p, fmt.Errorf("the case has %d bytes: %d at most", len(data), MaxCase)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return p, fmt.Errorf("it is no case of a simulation: byte %d: %w", syntax.Offset, err)
		}
		return p, fmt.Errorf("it is no case of a simulation: %w", err)
	}
	for c, rate := range p.Rates {
		if c.Doc() == "" {
			return p, fmt.Errorf("rates: there is no class of faults %q%s", c, grammar.Suggest(string(c), namesOf(Classes())))
		}
		if !(rate >= 0 && rate <= 1) {
			return p, fmt.Errorf("rates: %s: a rate is from 0 to 1, not %v", c, rate)
		}
	}
	for i, f := range p.Faults {
		if f.Class.Doc() == "" {
			return p, fmt.Errorf("faults: number %d: there is no class of faults %q%s", i+1, f.Class, grammar.Suggest(string(f.Class), namesOf(Classes())))
		}
	}
	switch {
	case p.Spell < 1 || p.Spell > 1<<16:
		return p, fmt.Errorf("spell is from 1 to %d, not %d", 1<<16, p.Spell)
	case p.Awake < 0:
		return p, fmt.Errorf("awake is at least 0, not %d", p.Awake)
	case !slices.Contains([]Preference{NoPreference, OneStarves, Newest, OneLast}, p.Prefer):
		return p, fmt.Errorf("prefer: there is no %q%s", p.Prefer, grammar.Suggest(string(p.Prefer), []string{string(OneStarves), string(Newest), string(OneLast)}))
	case !slices.IsSorted(p.Skip):
		return p, errors.New("skip: the numbers must ascend")
	}
	return p, nil
}

// mix is a number that looks random, of a seed, a place, and the number of an opportunity there.
func mix(seed uint64, place string, n, salt uint64) uint64 {
	h := seed*0x9e3779b97f4a7c15 ^ n*0xc2b2ae3d27d4eb4f ^ salt*0x165667b19e3779f9
	for i := range len(place) { // FNV-1a, from that state
		h = (h ^ uint64(place[i])) * 0x100000001b3
	}
	// The end of SplitMix64.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// share is a number from 0 to less than 1.
func share(h uint64) float64 { return float64(h>>11) / (1 << 53) }
