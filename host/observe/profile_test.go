package observe

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/wasmactors/wasmactors/host"
)

// The profile is one that pprof reads: as many samples as fuel was spent, by actor, type and
// function.
func TestProfile(t *testing.T) {
	s := newStage(t, nil)
	image := echoImage(t, 10)
	s.spawn("busy", host.Guest(image, "echo"))
	s.spawn("other", host.Guest(image, "echo"))
	s.run()
	m, err := Select{Paths: []string{"/user/busy"}}.compile("")
	if err != nil {
		t.Fatal(err)
	}
	before := s.row("/user/busy").Fuel
	end, err := s.sampleFuel(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Observer.Profile(t.Context(), time.Second, Select{}); !errors.Is(err, ErrBusy) {
		t.Errorf("two at a time: %v", err)
	}
	for range 1500 { // turns of a batch are sampled together, so there must be many
		for range 50 {
			s.tell("/user/busy", strings.Repeat("x", 1000))
			s.tell("/user/other", strings.Repeat("x", 1000))
		}
		s.run()
	}
	p := end()
	spent := s.row("/user/busy").Fuel - before
	want := float64(spent) / float64(host.MinFuelSample)
	if n := float64(p.Samples()); want < 50 || n < want/2 || n > want*2 {
		t.Errorf("%v samples of %v", n, want)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	x, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.CheckValid(); err != nil {
		t.Error(err)
	}
	for _, one := range x.Sample {
		if one.Label["actor"][0] != "/user/busy" || one.Label["type"][0] != "echo" || one.Value[1] != one.Value[0]*int64(host.MinFuelSample) {
			t.Errorf("%+v", one)
		}
		root := one.Location[len(one.Location)-1].Line[0].Function.Name
		if root != "echo" {
			t.Errorf("the root is %q", root)
		}
	}
	for _, bad := range []time.Duration{0, -1, time.Hour} {
		if _, err := s.Observer.Profile(t.Context(), bad, Select{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := s.Observer.Profile(t.Context(), time.Second, Select{States: []State{Running}}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if p, err := s.Observer.Profile(t.Context(), time.Millisecond, Select{}); err != nil || p.Samples() != 0 {
		t.Errorf("%v, %+v", err, p)
	}
}
