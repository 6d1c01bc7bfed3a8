package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coder/websocket"
)

// person is somebody in a room.
type person struct {
	ctx  context.Context
	name string
	conn *websocket.Conn
}

func enter(ctx context.Context, url, room, name string) (*person, error) {
	c, r, err := websocket.Dial(ctx, url+"/rooms/"+room+"?name="+strings.ReplaceAll(name, " ", "+"), nil)
	if err != nil {
		if r != nil {
			err = errors.New(r.Status)
		}
		return nil, fmt.Errorf("%s cannot enter: %w", name, err)
	}
	return &person{ctx, name, c}, nil
}

// step is something that somebody does or waits for.
type step func() error

// do takes steps one after the other, up to the first that fails.
func do(steps ...step) error {
	for _, s := range steps {
		if err := s(); err != nil {
			return err
		}
	}
	return nil
}

func (p *person) says(text string) step {
	return func() error { return p.conn.Write(p.ctx, websocket.MessageText, []byte(text)) }
}

func (p *person) hears(lines ...string) step {
	return func() error {
		for _, want := range lines {
			_, got, err := p.conn.Read(p.ctx)
			if err != nil {
				return fmt.Errorf("%s waits for %q: %w", p.name, want, err)
			}
			if string(got) != want {
				return fmt.Errorf("%s has heard %q, not %q", p.name, got, want)
			}
		}
		return nil
	}
}

// all waits until several have heard a line.
func all(line string, people ...*person) step {
	return func() error {
		for _, p := range people {
			if err := p.hears(line)(); err != nil {
				return err
			}
		}
		return nil
	}
}

// ends waits for the end of the connection; -1: without a word.
func (p *person) ends(code websocket.StatusCode) step {
	return func() error {
		_, got, err := p.conn.Read(p.ctx)
		if err == nil || p.ctx.Err() != nil || websocket.CloseStatus(err) != code {
			return fmt.Errorf("%s: %q, %v, want the end with %d", p.name, got, err, code)
		}
		return nil
	}
}

// quits has somebody leave, which the others hear.
func (p *person) quits(others ...*person) step {
	return func() error {
		return do(p.says("/quit"), p.ends(websocket.StatusNormalClosure), all("* "+p.name+" has gone", others...))
	}
}
