package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	_ "time/tzdata" // where the machine has no zones

	"github.com/fxamacker/cbor/v2"
)

// Entry is a scheduled entry; its wire format is that of the arguments of set. Exactly one of
// Cron, Every and At is given.
type Entry struct {
	Name  string        `cbor:"name"`
	Cron  string        `cbor:"cron,omitempty"`
	Every time.Duration `cbor:"every,omitempty"`
	At    string        `cbor:"at,omitempty"`    // see ParseTime
	AtNS  int64         `cbor:"at_ns,omitempty"` // the same as ns since 1970
	Zone  string        `cbor:"zone,omitempty"`  // IANA name; "": that of the settings, for guests UTC
	From  int64         `cbor:"from,omitempty"`  // every: the first run, ns since 1970; 0: when it is set

	To      string          `cbor:"to,omitempty"` // path of the actor; "": the actor that sets it
	Payload cbor.RawMessage `cbor:"payload,omitempty"`

	Delivery Delivery      `cbor:"delivery,omitempty"`
	Timeout  time.Duration `cbor:"timeout,omitempty"` // of an ask; 0: DefaultAskTimeout
	Overlap  bool          `cbor:"overlap,omitempty"` // a run may begin while another is in progress

	Missed   Missed        `cbor:"missed,omitempty"`
	Most     int           `cbor:"most,omitempty"`     // missed all: how many, the latest; 0: DefaultMost
	Deadline time.Duration `cbor:"deadline,omitempty"` // how late a run may begin; 0: any, with missed skip DefaultLate
}

// Delivery is how a run reaches the actor.
type Delivery string

// The kinds of delivery.
const (
	// Ask asks, and again until there is an answer that is not an error: at least once.
	Ask Delivery = "ask"
	// Once asks at most once; the answer only says that the run is over.
	Once Delivery = "once"
	// Tell tells, at most once.
	Tell Delivery = "tell"
)

// Missed says what happens to runs that were due while the system did not run.
type Missed string

// The policies.
const (
	// RunOnce runs once, for the latest of them: they are coalesced.
	RunOnce Missed = "once"
	// Skip runs for the latest only if it is not late.
	Skip Missed = "skip"
	// RunAll runs for each, in order, but only the latest Most.
	RunAll Missed = "all"
)

// Defaults and bounds of entries.
const (
	DefaultAskTimeout = 30 * time.Second
	MaxAskTimeout     = time.Hour
	DefaultMost       = 10
	MaxMost           = 100
	DefaultLate       = time.Minute
	MaxName           = 64
	MaxPath           = 1024
)

// check checks everything except when the entry runs.
func (e *Entry) check() error {
	switch {
	case !validName(e.Name):
		return fmt.Errorf("name %.80q: 1 to %d of A-Z a-z 0-9 . _ -", e.Name, MaxName)
	case len(e.To) > MaxPath || e.To != "" && !cleanPath(e.To):
		return fmt.Errorf("to %.80q is not the path of an actor, such as /user/reports", e.To)
	case e.Delivery != "" && e.Delivery != Ask && e.Delivery != Once && e.Delivery != Tell:
		return fmt.Errorf("delivery %.40q is not one of ask, once, tell", string(e.Delivery))
	case e.Missed != "" && e.Missed != RunOnce && e.Missed != Skip && e.Missed != RunAll:
		return fmt.Errorf("missed %.40q is not one of once, skip, all", string(e.Missed))
	case e.Timeout != 0 && (e.Timeout < time.Millisecond || e.Timeout > MaxAskTimeout):
		return fmt.Errorf("timeout %v: 1ms to %v", e.Timeout, MaxAskTimeout)
	case e.Timeout != 0 && e.Delivery == Tell:
		return errors.New("timeout cannot be combined with delivery: tell, which has no answer")
	case e.Most < 0 || e.Most > MaxMost || e.Most != 0 && e.Missed != RunAll:
		return fmt.Errorf("most %d: must be 1 to %d, and needs missed: all", e.Most, MaxMost)
	case e.Deadline < 0 || e.Deadline > MaxPeriod:
		return fmt.Errorf("deadline %v: up to %v", e.Deadline, MaxPeriod)
	case e.From != 0 && e.Every == 0:
		return errors.New("from is allowed only with every")
	}
	return nil
}

// spec is when the entry runs. now is when it was set.
func (e *Entry) spec(now time.Time) (*Spec, error) {
	given := 0
	for _, is := range []bool{e.Cron != "", e.Every != 0, e.At != "", e.AtNS != 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("one of cron, every and at is needed")
	}
	loc, err := location(e.Zone)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Cron != "":
		return specs.get(e.Cron, loc)
	case e.Every != 0:
		if e.From != 0 {
			now = time.Unix(0, e.From)
		} else {
			now = now.Add(e.Every)
		}
		return Every(e.Every, now)
	case e.At != "":
		t, err := ParseTime(e.At, loc)
		if err != nil {
			return nil, err
		}
		return At(t)
	}
	return At(time.Unix(0, e.AtNS).In(loc))
}

// same reports whether two entries are equal.
func (e *Entry) same(o *Entry) bool {
	a, b := *e, *o
	a.Payload, b.Payload = nil, nil
	return bytes.Equal(e.Payload, o.Payload) && a.comparable() == b.comparable()
}

func (e Entry) comparable() any {
	type comparable struct {
		name, cron, at, zone, to string
		every, timeout, deadline time.Duration
		atNS, from               int64
		delivery                 Delivery
		missed                   Missed
		overlap                  bool
		most                     int
	}
	return comparable{e.Name, e.Cron, e.At, e.Zone, e.To, e.Every, e.Timeout, e.Deadline, e.AtNS, e.From, e.delivery(), e.missed(), e.Overlap, e.Most}
}

func (e *Entry) delivery() Delivery {
	if e.Delivery == "" {
		return Ask
	}
	return e.Delivery
}

func (e *Entry) missed() Missed {
	if e.Missed == "" {
		return RunOnce
	}
	return e.Missed
}

func (e *Entry) timeout() time.Duration {
	if e.Timeout == 0 {
		return DefaultAskTimeout
	}
	return e.Timeout
}

func (e *Entry) most() int {
	if e.Most == 0 {
		return DefaultMost
	}
	return e.Most
}

// late is how late a run may begin, in ns; false: any.
func (e *Entry) late() (int64, bool) {
	switch {
	case e.Deadline > 0:
		return int64(e.Deadline), true
	case e.missed() == Skip:
		return int64(DefaultLate), true
	}
	return 0, false
}

func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= MaxName
}

// cleanPath reports whether a text is the path of one actor below /user whose names were chosen
// by its parents: names that begin with $ are chosen by the host, and may be another actor's
// after a restart.
func cleanPath(s string) bool {
	rest, ok := strings.CutPrefix(s, "/user/")
	if !ok {
		return false
	}
	for _, name := range strings.Split(rest, "/") {
		if name == "" || name == "." || name == ".." || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~") != "" {
			return false
		}
	}
	return true
}

// zones are the loaded zones, by name: each is read once.
var zones sync.Map

// location is a zone by its IANA name; "" is UTC. The machine's local zone is not supported, so
// that an entry means the same wherever it runs.
func location(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if name == "Local" || len(name) > 64 || strings.ContainsAny(name, "\\\x00") || strings.Contains(name, "..") || name[0] == '/' {
		return nil, fmt.Errorf("zone %.80q: the name of a zone is one such as Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q is not known: the name of a zone is one such as Europe/Berlin", name)
	}
	zones.Store(name, loc)
	return loc, nil
}

// specs caches parsed expressions: 10^5 entries share a few.
var specs specCache

type specCache struct {
	mu sync.Mutex
	of map[specKey]*Spec
}

type specKey struct {
	expression string
	loc        *time.Location
}

const mostSpecs = 4096

func (c *specCache) get(expression string, loc *time.Location) (*Spec, error) {
	key := specKey{expression, loc}
	c.mu.Lock()
	s := c.of[key]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := ParseCron(expression, loc)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= mostSpecs {
		c.of = map[specKey]*Spec{}
	}
	c.of[key] = s
	return s, nil
}
