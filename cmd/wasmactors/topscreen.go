package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/muesli/termenv"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/observe"
)

// screen is top on a terminal.
type screen struct {
	*top
	ctx       context.Context
	every     time.Duration
	colours   termenv.Profile
	width     int
	height    int
	last      admin.Table
	rates     rates
	has       bool // there is something to show
	err       error
	paused    bool
	searching bool
	round     int // of requests; answers to those from before a key was pressed are dropped
}

// looked is the answer to a request.
type looked struct {
	round int
	table admin.Table
	err   error
}

// due says that it is time for the next request.
type due struct{ round int }

// live shows the table until it is quit, or the bundle ends.
func (t *top) live(ctx context.Context, env *environment, every time.Duration) error {
	s := &screen{top: t, ctx: ctx, every: every, colours: colours(env.raw), width: 80, height: 24}
	p := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(env.stdin), tea.WithOutput(env.raw), tea.WithoutSignalHandler(), tea.WithEnvironment(os.Environ()))
	_, err := p.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, tea.ErrInterrupted):
		return nil
	case err != nil:
		return err
	}
	return s.err
}

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return s.again() }

// again makes a request at once.
func (s *screen) again() tea.Cmd {
	s.round++
	round := s.round
	t := *s.top
	t.limit = min(max(s.rows(), 1), observe.MaxLimit)
	return func() tea.Msg {
		table, err := t.look(s.ctx)
		return looked{round, table, err}
	}
}

// rows is how many actors fit.
func (s *screen) rows() int { return s.height - 5 }

// Update implements tea.Model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
		return s, s.again()
	case looked:
		if m.round != s.round {
			return s, nil
		}
		if m.err != nil {
			s.err = m.err
			return s, tea.Quit
		}
		if s.has {
			s.rates = newRates(s.last)
		}
		s.last, s.has = m.table, true
		if s.offset > 0 && s.offset >= m.table.Actors.Total {
			s.offset = max(m.table.Actors.Total-s.rows(), 0)
		}
		return s, tea.Tick(s.every, func(time.Time) tea.Msg { return due{m.round} })
	case due:
		if m.round != s.round || s.paused {
			return s, nil
		}
		return s, s.again()
	case tea.KeyPressMsg:
		return s, s.key(m)
	}
	return s, nil
}

// key handles a key.
func (s *screen) key(m tea.KeyPressMsg) tea.Cmd {
	name := m.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if s.searching {
		return s.typed(name, m.Key().Text)
	}
	move := func(by int) tea.Cmd {
		s.offset = min(max(s.offset+by, 0), max(s.last.Actors.Total-1, 0))
		return s.again()
	}
	switch name {
	case "q", "esc":
		return tea.Quit
	case "/":
		s.searching, s.search = true, ""
	case "s":
		return s.by(1)
	case "S", "shift+s":
		return s.by(-1)
	case "r":
		s.desc = !s.desc
		return s.again()
	case "space", " ":
		if s.paused = !s.paused; !s.paused {
			return s.again()
		}
	case "up", "k":
		return move(-1)
	case "down", "j":
		return move(1)
	case "pgup":
		return move(-s.rows())
	case "pgdown":
		return move(s.rows())
	case "home", "g":
		return move(-s.offset)
	case "end", "G":
		return move(s.last.Actors.Total - s.rows() - s.offset)
	}
	return nil
}

// typed edits the text of the search.
func (s *screen) typed(name, text string) tea.Cmd {
	switch name {
	case "enter":
		s.searching = false
		return nil
	case "esc":
		s.searching, s.search = false, ""
	case "backspace":
		if r := []rune(s.search); len(r) > 0 {
			s.search = string(r[:len(r)-1])
		}
	default:
		if s.search += text; text == "" || len(s.search) > 200 {
			return nil
		}
	}
	s.offset = 0
	return s.again()
}

// by changes the column to sort by.
func (s *screen) by(step int) tea.Cmd {
	all := observe.Sorts()
	s.sort = all[(slices.Index(all, s.sort)+step+len(all))%len(all)]
	s.desc = s.sort != "path" && s.sort != "type" && s.sort != "state"
	return s.again()
}

// View implements tea.Model.
func (s *screen) View() tea.View {
	v := tea.NewView(s.draw())
	v.AltScreen = true
	return v
}

func (s *screen) draw() string {
	if !s.has {
		return "looking ..."
	}
	var lines []string
	lines = append(lines, strings.Split(s.rates.head(s.last), "\n")...)
	lines = append(lines, s.foot(), s.style(columns(s.sort)).Reverse().String())
	for _, a := range s.last.Actors.Actors {
		line := s.rates.row(a, s.last.Actors.Now)
		switch a.State {
		case observe.Suspended:
			line = s.style(line).Foreground(s.colours.Color("1")).String()
		case observe.Delayed, observe.Starved:
			line = s.style(line).Foreground(s.colours.Color("3")).String()
		case observe.Asleep, observe.Paused, observe.Stopping:
			line = s.style(line).Faint().String()
		default:
			line = s.clip(line)
		}
		lines = append(lines, line)
	}
	for i := range lines[:3] {
		lines[i] = s.clip(lines[i])
	}
	return strings.Join(lines[:min(len(lines), s.height)], "\n")
}

// foot describes what the table shows.
func (s *screen) foot() string {
	order := "largest first"
	if !s.desc {
		order = "smallest first"
	}
	text := fmt.Sprintf("%d-%d of %d by %s, %s", s.offset+1, s.offset+len(s.last.Actors.Actors), s.last.Actors.Total, s.sort, order)
	switch {
	case s.searching:
		text = "search: " + s.search + "_   " + text
	case s.search != "":
		text += fmt.Sprintf(", with %q", s.search)
	}
	if s.paused {
		text += ", stopped: space goes on"
	}
	return text + "   (/ search, s sort, r reverse, q quit)"
}

func (s *screen) style(line string) termenv.Style { return s.colours.String(s.clip(line)) }

// clip cuts a line to the terminal's width.
func (s *screen) clip(line string) string {
	if r := []rune(line); len(r) > s.width {
		return string(r[:max(s.width, 0)])
	}
	return line
}
