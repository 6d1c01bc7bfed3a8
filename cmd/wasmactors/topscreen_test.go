package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/muesli/termenv"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/observe"
)

// testScreen is a screen with n actors in its bundle.
func testScreen(n int) *screen {
	s := &screen{top: &top{sort: "turns", desc: true}, ctx: context.Background(), every: time.Second, colours: termenv.Ascii, width: 80, height: 10}
	s.round = 1
	s.show(n)
	return s
}

// show is a look that has found n actors.
func (s *screen) show(n int) {
	now := time.Unix(1000, 0)
	t := admin.Table{System: observe.System{Name: "shop", Actors: n, Now: now, Started: now.Add(-time.Minute)}, Actors: observe.Page{Now: now, Total: n}}
	for i := range min(n-s.offset, s.rows()) {
		t.Actors.Actors = append(t.Actors.Actors, observe.Actor{Path: fmt.Sprintf("/user/%d", s.offset+i), Type: "echo", State: observe.Running, Failure: "a text that is far too long for the terminal, really"})
	}
	s.Update(looked{s.round, t, nil})
}

func (s *screen) press(keys ...tea.Key) (quits bool) {
	for _, k := range keys {
		_, cmd := s.Update(tea.KeyPressMsg(k))
		if cmd == nil {
			continue
		}
		// A look is not made: its command would call the bundle.
		if fmt.Sprintf("%p", cmd) == fmt.Sprintf("%p", tea.Cmd(tea.Quit)) {
			quits = true
		}
	}
	return quits
}

func letters(text string) (keys []tea.Key) {
	for _, r := range text {
		keys = append(keys, tea.Key{Code: r, Text: string(r)})
	}
	return keys
}

func TestKeysOfTop(t *testing.T) {
	s := testScreen(100)
	for _, c := range []struct {
		keys []tea.Key
		want func() bool
		what string
	}{
		{letters("j"), func() bool { return s.offset == 1 }, "down"},
		{[]tea.Key{{Code: tea.KeyPgDown}}, func() bool { return s.offset == 6 }, "a page down"},
		{[]tea.Key{{Code: tea.KeyEnd}}, func() bool { return s.offset == 95 }, "the end"},
		{[]tea.Key{{Code: tea.KeyUp}}, func() bool { return s.offset == 94 }, "up"},
		{[]tea.Key{{Code: tea.KeyHome}}, func() bool { return s.offset == 0 }, "the beginning"},
		{letters("k"), func() bool { return s.offset == 0 }, "beyond the beginning"},
		{letters("s"), func() bool { return s.sort == "fuel" && s.desc }, "the next column"},
		{letters("S"), func() bool { return s.sort == "turns" && s.desc }, "the column before"},
		{letters("r"), func() bool { return !s.desc }, "the order"},
		{letters("/qé"), func() bool { return s.searching && s.search == "qé" }, "a search"},
		{[]tea.Key{{Code: tea.KeyBackspace}}, func() bool { return s.search == "q" }, "a character less"},
		{[]tea.Key{{Code: tea.KeyEnter}}, func() bool { return !s.searching && s.search == "q" }, "the end of the search"},
		{append(letters("/x"), tea.Key{Code: tea.KeyEscape}), func() bool { return !s.searching && s.search == "" }, "no search"},
		{letters(" "), func() bool { return s.paused }, "a stop"},
		{letters(" "), func() bool { return !s.paused }, "no stop"},
	} {
		if s.press(c.keys...) || !c.want() {
			t.Errorf("%s: %+v", c.what, s.top)
		}
	}
	for _, k := range []tea.Key{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}, {Code: tea.KeyEscape}} {
		if !s.press(k) {
			t.Errorf("%v does not quit", k)
		}
	}
}

// No line is wider than the terminal, there are no more than fit, and what is late is not
// shown.
func TestTopFits(t *testing.T) {
	s := testScreen(100)
	for _, size := range [][2]int{{80, 24}, {40, 10}, {10, 5}, {1, 1}, {300, 100}} {
		s.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		s.show(100)
		lines := strings.Split(s.draw(), "\n")
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if n := len([]rune(l)); n > size[0] {
				t.Errorf("%v: %d columns", size, n)
			}
		}
	}
	s.offset = 90
	s.show(3) // fewer than there were
	if s.offset != 0 {
		t.Error("nothing is shown: from", s.offset)
	}
	s.Update(looked{s.round - 1, admin.Table{}, nil})
	if s.last.System.Name != "shop" {
		t.Error("a late look is shown")
	}
	if _, cmd := s.Update(looked{s.round, admin.Table{}, fmt.Errorf("gone")}); cmd == nil || s.err == nil {
		t.Error("it goes on without a bundle")
	}
}
