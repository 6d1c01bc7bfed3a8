package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Way is how an actor comes to other code.
type Way string

const (
	// State has the old code write the state, and the new code read it.
	State Way = "state"
	// Events has the actor begin anew with the new code, which handles the events that the actor has kept. See Options.Events.
	Events Way = "events"
	// Replay has the new code handle all messages again that an incarnation of a durable actor has handled. The actor goes over if that has led to
	// the same commands. For that the store keeps what is not needed any more, see durable.Options.Keep.
	Replay Way = "replay"
	// Restart begins anew with the new code: the state is lost.
	Restart Way = "restart"
)

// Default are the ways of a volatile actor that nothing is said about: its state goes over, or its events do. Where neither is possible, it is
// restarted, as it was before there was another way; the report says so.
var Default = []Way{State, Events, Restart}

// DefaultDurable are those of a durable actor: it is only restarted, and loses its state, if it is said that it may.
var DefaultDurable = []Way{State, Events}

// ParseWays checks the names of ways.
func ParseWays(names []string) (ways []Way, err error) {
	for _, name := range names {
		w := Way(name)
		switch {
		case w != State && w != Events && w != Replay && w != Restart:
			return nil, fmt.Errorf("there is no way %q; there are state, events, replay and restart", name)
		case slices.Contains(ways, w):
			return nil, fmt.Errorf("the way %q is there twice", name)
		}
		ways = append(ways, w)
	}
	return ways, nil
}

// choose is the first way that is open to an actor. A way that is chosen and then fails is not followed by the next one: nobody loses a
// state because of a mistake.
func choose(ways []Way, x *swap.Member, image *sandbox.Image) (Way, error) {
	if ways == nil {
		ways = Default
	}
	why := lacks(x.Type, x.Image, image)
	if x.Events { // what the SDK knows of them is not in what is saved
		why = "it keeps events"
	}
	for _, w := range ways {
		switch {
		case w == Restart, w == State && why == "", w == Events && x.Events, w == Replay && x.Durable && !x.Events && sandbox.CannotSave(image) == "":
			return w, nil
		}
	}
	return "", fmt.Errorf("none of its ways is open (%s): %s", named(ways), why)
}

// named are the names of ways.
func named(ways []Way) string {
	names := make([]string, len(ways))
	for i, w := range ways {
		names[i] = string(w)
	}
	return strings.Join(names, ", ")
}

// lacks says why the state cannot go over; empty: it can.
func lacks(typ string, old, image *sandbox.Image) string {
	if alike(old, image) {
		return ""
	}
	for _, x := range []struct {
		what string
		i    *sandbox.Image
	}{{"old", old}, {"new", image}} {
		if d := x.i.Description(); !slices.Contains(d.Saves, typ) {
			return fmt.Sprintf("the %s code does not say that %s saves its state", x.what, typ)
		}
		if why := sandbox.CannotSave(x.i); why != "" {
			return fmt.Sprintf("the %s code cannot be copied: %s", x.what, why)
		}
	}
	return ""
}

// alike reports whether a state of one image is one of the other as it is: it is the same code, under other limits.
func alike(old, image *sandbox.Image) bool {
	a, err := sandbox.Identity(old)
	if err != nil {
		return false
	}
	b, err := sandbox.Identity(image)
	return err == nil && a == b && sandbox.CannotSave(old) == "" && sandbox.CannotSave(image) == ""
}
