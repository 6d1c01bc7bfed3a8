package keyed

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Header marks a message for the keeper itself: its value says what to do. Only Go code that has
// the system, the keeper's parent, and the actors that [Config.WithManagers] names may send it;
// the sender is the one that the host states.
//
//	keys       answered with a page of keys, see [Keys]
//	passivate  the payload is a key: its actor ends as soon as it has nothing to do
const Header = "wasmactors.keyed"

const (
	opKeys      = "keys"
	opPassivate = "passivate"
)

// MostKeys is how many keys a page has at most.
const MostKeys = 1000

// Entry is a key.
type Entry struct {
	Key string `cbor:"key"`
	// State is awake, leaving (it ends), waiting (for a place), failed, or past: its
	// actor has ended.
	State string `cbor:"state"`
	// Since is when its present actor was started, or when its last one has ended; zero: neither.
	Since time.Time `cbor:"since"`
}

// Page says which keys are wanted.
type Page struct {
	Past  bool   `cbor:"past"`  // whose actors have ended, instead of those that the keeper has
	After string `cbor:"after"` // only keys behind this one, in the order of [Name]
	Most  int    `cbor:"most"`  // 0, and more than MostKeys: MostKeys
}

var stateNames = [...]string{awake: "awake", leaving: "leaving", waiting: "waiting", granted: "waiting", failed: "failed"}

// Keys is a page of the keys of a keeper, sorted by their names. For the next page pass the
// last key as After; after the last page comes an empty one.
func Keys(ctx context.Context, sys *host.System, keeper host.Ref, p Page) ([]Entry, error) {
	return host.AskAs[[]Entry](ctx, sys, keeper, headed(p, Header, opKeys))
}

// Passivate makes the actor of a key end as soon as it is idle; a key without an actor is left
// as it is.
func Passivate(ctx context.Context, sys *host.System, keeper host.Ref, key string) error {
	_, err := sys.Ask(ctx, keeper, headed(key, Header, opPassivate))
	return err
}

var errDenied = errors.New("keyed: the sender may not manage the keys")

// mayManage checks the sender that the host has written into the message.
func (h *head) mayManage(ctx *host.Context) bool {
	s := h.msg.Sender
	path := s.Path()
	return s.IsZero() || path == "/temp" || s.UID() == ctx.Parent().UID() || glob.MatchAnyPath(h.managed, strings.Split(path[1:], "/"))
}

// manage handles a message for the keeper itself.
func (h *head) manage(ctx *host.Context, op string) {
	answer, err := any(nil), error(nil)
	switch {
	case !h.mayManage(ctx):
		err = errDenied
	case op == opKeys:
		var p Page
		if err = h.msg.Decode(&p); err != nil {
			err = errors.New("keyed: the payload is not a map with past, after and most")
			break
		}
		answer = h.page(p)
	case op == opPassivate:
		var key string
		if err = h.msg.Decode(&key); err != nil {
			err = errors.New("keyed: the payload is not a key")
			break
		}
		var name string
		if name, err = Name(key); err != nil {
			break
		}
		if e := h.entries[name]; e != nil && e.state == awake && !h.passivate(ctx, e) {
			err = errors.New("keyed: too many actors are ending")
		}
	default:
		err = errors.New("keyed: there is no such order: " + op[:min(len(op), 40)])
	}
	switch {
	case err != nil:
		h.complain(ctx, err)
	case h.msg.Correlation != 0:
		_ = ctx.Reply(answer)
	}
}

func (h *head) page(p Page) []Entry {
	after := ""
	if p.After != "" {
		var err error
		if after, err = Name(p.After); err != nil {
			return []Entry{}
		}
	}
	if p.Most <= 0 || p.Most > MostKeys {
		p.Most = MostKeys
	}
	var names []string
	if p.Past {
		for name := range h.past.at {
			names = append(names, name)
		}
	} else {
		for name := range h.entries {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	at, found := slices.BinarySearch(names, after)
	if found {
		at++
	}
	names = names[at:]
	out := []Entry{}
	for _, name := range names[:min(len(names), p.Most)] {
		key, _ := Key(name)
		x := Entry{Key: key, State: "past"}
		if p.Past {
			x.Since = h.past.at[name].Value.(gone).since
		} else {
			e := h.entries[name]
			x.State = stateNames[e.state]
			if e.started != 0 {
				x.Since = timeOf(e.started)
			}
		}
		out = append(out, x)
	}
	return out
}
