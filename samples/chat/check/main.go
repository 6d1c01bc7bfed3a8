// Command check runs the chat, talks in it, and compares what each person has heard with what they
// must have, across crashes of rooms, rooms that end, and ends of the process, kill -9 included.
//
//	check wasmactors samples/chat
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// patience is for all of it; building the guest is a part of it.
const patience = 2 * time.Minute

// mostLines is how many lines a room keeps.
const mostLines = 50

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check wasmactors samples/chat")
		os.Exit(2)
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := check(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// story is what has happened so far.
type story struct {
	ctx    context.Context
	server *server
	ann    *person
	lobby  []string // what was said in the lobby
	attic  []string
}

func check(ctx context.Context, bin, bundle string) error {
	s, err := newServer(ctx, bin, bundle)
	if err != nil {
		return err
	}
	defer s.close()
	st := &story{ctx: ctx, server: s}
	for _, part := range []struct {
		tells string
		do    func() error
	}{
		{"Two rooms, three people, three crashes: all have stayed connected and heard what was said, and nothing else.", st.crashes},
		{fmt.Sprintf("A room has crashed: who came then has heard the last %d lines, and no older ones.", mostLines), st.remembers},
		{"A room that was empty has ended, and another one has taken its place: it knew what was said in it.", st.idles},
		{"The process has ended in good order, and another one has begun: people came again, and what was said was there.", st.restarts},
		{"The process was killed with -9: people came again, and what was said was there.", st.killed},
	} {
		if err := part.do(); err != nil {
			return fmt.Errorf("%w\nthe server says:\n%s", err, s.says())
		}
		fmt.Println(part.tells)
	}
	return nil
}

// crashes: who is in a room stays in it, whatever becomes of the room.
func (s *story) crashes() error {
	ann, err := s.enter("lobby", "ann", nil, 1)
	if err != nil {
		return err
	}
	s.ann = ann
	bob, err := s.enter("lobby", "bob", nil, 2, ann)
	if err != nil {
		return err
	}
	carol, err := s.enter("attic", "carol", nil, 1)
	if err != nil {
		return err
	}
	for _, refused := range []struct{ name, status string }{{"", "400"}, {"a b", "400"}, {strings.Repeat("x", 25), "400"}, {"ann", "409"}} {
		if _, err := enter(s.ctx, s.server.url, "lobby", refused.name); err == nil || !strings.Contains(err.Error(), refused.status) {
			return fmt.Errorf("the name %q: %v, want %s", refused.name, err, refused.status)
		}
	}
	if err := s.talk(&s.lobby, ann, "hello, bob <3", ann, bob); err != nil {
		return err
	}
	if err := s.talk(&s.attic, carol, "is anybody here?", carol); err != nil {
		return err
	}
	for range 3 {
		if err := crash(bob, ann, bob); err != nil {
			return err
		}
		if err := s.talk(&s.lobby, ann, "still here", ann, bob); err != nil {
			return err
		}
	}
	s.lobby = append(s.lobby, "ann: one bob: two")
	return do(
		ann.says("one\nbob: two"), all("ann: one bob: two", ann, bob), // a break does not make two lines of it, of which the second could be anybody's
		carol.says("/who"), carol.hears("* here: carol"), // of all this nothing was heard in the other room
		bob.quits(ann),
		ann.says("/who"), ann.hears("* here: ann"),
		carol.quits(),
	)
}

// remembers: what is kept is bounded, and a crash does not take it.
func (s *story) remembers() error {
	dave, err := s.enter("lobby", "dave", s.lobby, 2, s.ann)
	if err != nil {
		return err
	}
	for i := range mostLines + 10 {
		if err := s.talk(&s.lobby, dave, fmt.Sprint("line ", i), s.ann, dave); err != nil {
			return err
		}
	}
	if err := crash(dave, s.ann, dave); err != nil {
		return err
	}
	eve, err := s.enter("lobby", "eve", last(s.lobby), 3, s.ann, dave)
	if err != nil {
		return err
	}
	text, err := s.server.run("kv", "get", "rooms", "history/lobby")
	if want := strings.Join(last(s.lobby), "\n"); err != nil || text != want {
		return fmt.Errorf("the store has %q (%v), not %q", text, err, want)
	}
	return do(eve.quits(s.ann, dave), dave.quits(s.ann))
}

// idles: a room on demand ends when nobody was there for a while.
func (s *story) idles() error {
	if err := until(s.ctx, func() bool {
		tree, err := s.server.run("tree", "--json")
		return err == nil && strings.Contains(tree, "lobby") && !strings.Contains(tree, "attic")
	}); err != nil {
		return fmt.Errorf("the attic lives on: %w", err)
	}
	_, err := s.enter("attic", "carol", s.attic, 1)
	return err
}

// restarts: an end in good order.
func (s *story) restarts() error {
	if err := s.server.stop(); err != nil {
		return err
	}
	return do(s.ann.ends(websocket.StatusGoingAway), s.again)
}

// killed: an end without any order. Of a write the process knows before the disk does, so a later
// one waits until it is written; what was written before it is, too.
func (s *story) killed() error {
	if err := s.talk(&s.lobby, s.ann, "before the lights go out", s.ann); err != nil {
		return err
	}
	if err := until(s.ctx, func() bool {
		text, err := s.server.run("kv", "get", "rooms", "history/lobby")
		return err == nil && text == strings.Join(last(s.lobby), "\n")
	}); err != nil {
		return err
	}
	if _, err := s.server.run("kv", "put", "rooms", "check", "written"); err != nil {
		return err
	}
	s.server.kill()
	return do(s.ann.ends(-1), s.again)
}

// again starts the server, and those who were there come back.
func (s *story) again() (err error) {
	if err := s.server.start(); err != nil {
		return err
	}
	if s.ann, err = s.enter("lobby", "ann", last(s.lobby), 1); err != nil {
		return err
	}
	_, err = s.enter("attic", "carol", s.attic, 1)
	return err
}

// enter has somebody come into a room, who hears what was said, and the others hear of it.
func (s *story) enter(room, name string, said []string, here int, others ...*person) (*person, error) {
	p, err := enter(s.ctx, s.server.url, room, name)
	if err != nil {
		return nil, err
	}
	return p, do(p.hears(append(slices.Clone(said), fmt.Sprintf("* welcome, %s; %d are here", name, here))...), all("* "+name+" has come", others...))
}

// talk has somebody say something, which those who are there hear.
func (s *story) talk(room *[]string, who *person, text string, there ...*person) error {
	line := who.name + ": " + text
	*room = append(*room, line)
	return do(who.says(text), all(line, there...))
}

// crash has somebody crash the room, which is back at once.
func crash(who *person, there ...*person) error {
	return do(who.says("/crash"), all("* the room is back", there...))
}

// last are the lines that a room keeps.
func last(lines []string) []string { return lines[max(0, len(lines)-mostLines):] }

// until waits until something is so.
func until(ctx context.Context, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
