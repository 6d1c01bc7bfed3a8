package actor

import "testing"

type mute struct{}

func (mute) Receive(*Context, *Message) error { return nil }

type starts struct{ mute }

func (starts) Started(*Context) error { return nil }

type stops struct{ mute }

func (stops) Stopped(*Context) {}

type restarts struct{ mute }

func (restarts) PreRestart(*Context, string) {}

// What has a method that is called at its end is told of it, and what could have one, too.
func TestSilentTypes(t *testing.T) {
	around := func(next Behavior) Behavior { return next }
	of := func(a Actor) func() Actor { return func() Actor { return a } }
	for name, c := range map[string]struct {
		factory func() Actor
		silent  bool
	}{
		"Receive only":                {of(mute{}), true},
		"Started":                     {of(starts{}), true},
		"Stopped":                     {of(stops{}), false},
		"PreRestart":                  {of(restarts{}), false},
		"intercepted":                 {Intercepted(of(mute{}), around), true},
		"intercepted twice, Stopped":  {Intercepted(Intercepted(of(stops{}), around), around), false},
		"intercepted, PreRestart":     {Intercepted(of(restarts{}), around), false},
		"nil":                         {of(nil), false},
		"a factory that panics":       {func() Actor { panic("not yet") }, false},
		"a factory of another's type": {func() Actor { return Intercepted(of(starts{}), around)() }, true},
	} {
		if got := silent(c.factory); got != c.silent {
			t.Errorf("%s: %v", name, got)
		}
	}
}
