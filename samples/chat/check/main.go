// Command check talks in the chat and compares what each person has seen with what they must have.
//
//	check URL
//	check port    prints a port that is free
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/coder/websocket"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check URL, or: check port")
		os.Exit(2)
	}
	if os.Args[1] == "port" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(l.Addr().(*net.TCPAddr).Port)
		_ = l.Close()
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if err := talk(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func talk(ctx context.Context, url string) error {
	if err := page(ctx, url); err != nil {
		return err
	}
	ann, err := enter(ctx, url, "lobby", "ann")
	if err != nil {
		return err
	}
	if err := ann.hears("* welcome, ann; 1 are here"); err != nil {
		return err
	}
	bob, err := enter(ctx, url, "lobby", "bob")
	if err != nil {
		return err
	}
	carol, err := enter(ctx, url, "attic", "carol")
	if err != nil {
		return err
	}
	for _, refused := range []struct{ name, status string }{{"", "400"}, {"a b", "400"}, {strings.Repeat("x", 25), "400"}, {"ann", "409"}} {
		if _, err := enter(ctx, url, "lobby", refused.name); err == nil || !strings.Contains(err.Error(), refused.status) {
			return fmt.Errorf("the name %q: %v, want %s", refused.name, err, refused.status)
		}
	}
	steps := []func() error{
		func() error { return ann.hears("* bob has come") },
		func() error { return bob.hears("* welcome, bob; 2 are here") },
		func() error { return carol.hears("* welcome, carol; 1 are here") },
		func() error { return ann.says("hello, bob <3") },
		func() error { return ann.hears("ann: hello, bob <3") },
		func() error { return bob.hears("ann: hello, bob <3") },
	}
	for range 3 { // the room crashes, and its people are still there
		steps = append(steps,
			func() error { return bob.says("/crash") },
			func() error { return ann.hears("* the room is back") },
			func() error { return bob.hears("* the room is back") },
			func() error { return ann.says("still here") },
			func() error { return ann.hears("ann: still here") },
			func() error { return bob.hears("ann: still here") },
		)
	}
	steps = append(steps,
		func() error { return carol.says("/who") }, // of all this nothing was heard in the other room
		func() error { return carol.hears("* here: carol") },
		func() error { return bob.says("/quit") },
		func() error { return bob.ends(websocket.StatusNormalClosure) },
		func() error { return ann.hears("* bob has gone") },
		func() error { return ann.says("/who") },
		func() error { return ann.hears("* here: ann") },
	)
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println("Two rooms, three people, three crashes: everybody has stayed connected and heard what was said, and nothing else.")
	return nil
}

// page waits until the server is there.
func page(ctx context.Context, url string) error {
	for {
		r, err := http.Get(url)
		if err == nil {
			b, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if err != nil || r.StatusCode != 200 || !strings.Contains(string(b), "chat.js") {
				return fmt.Errorf("the page: %d, %v", r.StatusCode, err)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

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
		return nil, err
	}
	return &person{ctx, name, c}, nil
}

func (p *person) says(text string) error {
	return p.conn.Write(p.ctx, websocket.MessageText, []byte(text))
}

func (p *person) hears(lines ...string) error {
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

func (p *person) ends(code websocket.StatusCode) error {
	_, got, err := p.conn.Read(p.ctx)
	if websocket.CloseStatus(err) != code {
		return fmt.Errorf("%s: %q, %v, want the end with %d", p.name, got, err, code)
	}
	return nil
}
