// Command unplug kills a ledger again and again while money moves, and audits its books after each start.
//
//	unplug WASMACTORS BUNDLE STATE TIMES [MODULE]
//
// With a module, the .wasm of the guests, it upgrades the ledger in each life, and kills that at any time of it: when the new code has come,
// while it does, and while it goes back.
//
// It keeps eight transfers from alice to bob under way, of 1, 2, 4, ... 128 cents. So the sum that has moved tells for each
// transfer that was under way at a kill whether it was done: it may have been or not, but not twice. What was answered
// must have been done.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"time"
)

const (
	opening  = 1_000_000_000 // cents, of every account, as in durable.yaml
	accounts = 10
	slots    = 8
	patience = 30 * time.Second
)

func main() {
	if len(os.Args) != 5 && len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: unplug WASMACTORS BUNDLE STATE TIMES [MODULE]")
		os.Exit(2)
	}
	times, err := strconv.Atoi(os.Args[4])
	var u *upgrades
	if err == nil && len(os.Args) == 6 {
		u, err = newUpgrades(os.Args[1], os.Args[5], os.Args[3])
	}
	if err == nil {
		err = audit(times, u, os.Args[1], "run", os.Args[2], "--input", "-", "--quiet", "--env", "STATE="+os.Args[3], "--allow", "write="+os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "unplug:", err)
		os.Exit(1)
	}
}

// books are what the bundle says it has done.
type books struct{ moved, transfers int64 }

func audit(times int, u *upgrades, command string, args ...string) error {
	var sure, done, answered int64 // cents that must have moved; transfers that were done, and those of them that were answered
	began := time.Now()
	underway := [slots]bool{}
	for life := 0; ; life++ {
		p, err := start(command, args)
		if err != nil {
			return err
		}
		b, err := p.settled()
		if err != nil {
			p.kill()
			return fmt.Errorf("life %d: %w", life, err)
		}
		rest := b.moved - sure
		for i := range underway {
			if rest&(1<<i) != 0 && underway[i] {
				rest -= 1 << i
				done++
			}
		}
		switch {
		case rest < 0:
			err = fmt.Errorf("life %d: %d cents were answered and are not there", life, -rest)
		case rest > 0:
			err = fmt.Errorf("life %d: %d cents have moved twice", life, rest)
		case b.transfers != done:
			err = fmt.Errorf("life %d: the auditor has seen %d transfers of %d", life, b.transfers, done)
		}
		if err != nil || life == times {
			p.kill()
			if err == nil {
				fmt.Printf("killed %d times in %v: %d transfers were done, %d of them answered.\n", times, time.Since(began).Round(100*time.Millisecond), done, answered)
				u.tell()
				fmt.Printf("The books agree: nothing that was answered is lost, nothing was done twice, %d cents are where they were or have moved.\n", int64(opening*accounts))
			}
			return err
		}
		var n int64
		under := u.begin(p, life)
		underway, n, err = p.move(1+rand.Int64N(100), under.due)
		under.killed()
		p.kill()
		under.end()
		if err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
		sure, done, answered = b.moved+p.sum, done+n, answered+n
	}
}

// process is a run of the bundle.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan line
	n     int   // lines that were written
	sum   int64 // cents that were answered
}

type line struct {
	Line  int             `json:"line"`
	Kind  string          `json:"kind"`
	Reply json.RawMessage `json:"reply"`
}

func start(command string, args []string) (*process, error) {
	p := &process{cmd: exec.Command(command, args...), lines: make(chan line, 64)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		s := bufio.NewScanner(out)
		for s.Scan() {
			var l line
			if json.Unmarshal(s.Bytes(), &l) == nil {
				p.lines <- l
			}
		}
	}()
	return p, nil
}

// kill ends the process as a power failure would, as far as it can tell.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	for range p.lines {
	}
}

func (p *process) write(to string, message any) (n int, err error) {
	b, err := json.Marshal(map[string]any{"to": to, "message": message, "ask": true})
	if err == nil {
		_, err = p.in.Write(append(b, '\n'))
	}
	p.n++
	return p.n, err
}

var errOver = errors.New("the process has ended by itself")

func (p *process) ask(to string, message, answer any) error {
	n, err := p.write(to, message)
	if err != nil {
		return err
	}
	timeout := time.After(patience)
	for {
		select {
		case l, ok := <-p.lines:
			switch {
			case !ok:
				return errOver
			case l.Line != n:
			case l.Kind != "reply":
				return fmt.Errorf("%s: %s", to, l.Kind)
			default:
				return json.Unmarshal(l.Reply, answer)
			}
		case <-timeout:
			return fmt.Errorf("%s does not answer", to)
		}
	}
}

// settled are the books when all that was under way has come to its end.
func (p *process) settled() (books, error) {
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		var balances map[string]int64
		var totals struct{ Transfers, Volume int64 }
		if err := p.ask("bank", "report", &balances); err != nil {
			return books{}, err
		}
		if err := p.ask("auditor", "report", &totals); err != nil {
			return books{}, err
		}
		total := int64(0)
		for _, b := range balances {
			total += b
		}
		b := books{opening - balances["alice"], totals.Transfers}
		if total == opening*accounts && b.moved == totals.Volume {
			return b, nil
		}
		if time.Now().After(end) {
			return b, fmt.Errorf("the books do not agree: %d cents, %d have left alice, the auditor has seen %d", total, b.moved, totals.Volume)
		}
	}
}

// move moves money until so many transfers are answered, and the kill is due. underway are those that are not answered.
func (p *process) move(most int64, due func() bool) (underway [slots]bool, answered int64, err error) {
	of := map[int]int{}
	next := func(i int) error {
		n, err := p.write("gateway", map[string]any{"id": p.n + 1, "from": "alice", "to": "bob", "amount": 1 << i})
		of[n], underway[i] = i, true
		return err
	}
	for i := range slots {
		if err := next(i); err != nil {
			return underway, answered, err
		}
	}
	timeout := time.After(patience)
	for answered < most || !due() {
		select {
		case l, ok := <-p.lines:
			if !ok {
				return underway, answered, errOver
			}
			i, mine := of[l.Line]
			if !mine {
				continue
			}
			var receipt struct{ Status string }
			if l.Kind != "reply" || json.Unmarshal(l.Reply, &receipt) != nil || receipt.Status != "done" {
				return underway, answered, fmt.Errorf("transfer: %s %s", l.Kind, l.Reply)
			}
			answered++
			p.sum += 1 << i
			underway[i] = false
			if err := next(i); err != nil {
				return underway, answered, err
			}
		case <-timeout:
			return underway, answered, errors.New("transfers are not answered")
		}
	}
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
	return underway, answered, nil
}
