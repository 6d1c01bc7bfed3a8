package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// script is what the input says will happen.
type script struct {
	attempts map[int]int      // by line: at the order in it
	orders   map[int]int64    // by line
	outages  map[string][]int // by client: failures of each order that has any
	crashes  int              // of the service
}

func readScript(path string) (*script, error) {
	s := &script{attempts: map[int]int{}, orders: map[int]int64{}, outages: map[string][]int{}}
	err := lines(path, func(n int, text []byte) error {
		if text[0] == '#' {
			return nil
		}
		var row struct {
			To      string
			Message struct {
				ID      int64
				Trouble []string
			}
		}
		if err := json.Unmarshal(text, &row); err != nil || row.To == "" {
			return err
		}
		trouble := row.Message.Trouble
		s.attempts[n], s.orders[n] = len(trouble)+1, row.Message.ID
		if len(trouble) > 0 {
			s.outages[row.To] = append(s.outages[row.To], len(trouble))
		}
		for _, t := range trouble {
			if t == "crash" {
				s.crashes++
			}
		}
		return nil
	})
	return s, err
}

// answered compares the replies with the script.
func (s *script) answered(path string) error {
	seen := map[int]bool{}
	err := lines(path, func(_ int, text []byte) error {
		var r struct {
			Line  int
			Kind  string
			Reply struct {
				ID       int64
				Text     string
				Attempts int
			}
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		want := fmt.Sprintf("order %d is accepted", s.orders[r.Line])
		switch {
		case seen[r.Line] || s.attempts[r.Line] == 0:
			return fmt.Errorf("line %d is not an order, or was answered twice", r.Line)
		case r.Kind != "reply" || r.Reply.ID != s.orders[r.Line] || r.Reply.Text != want:
			return fmt.Errorf("line %d: not what was due: %s", r.Line, text)
		case r.Reply.Attempts != s.attempts[r.Line]:
			return fmt.Errorf("line %d has taken %d attempts, the script says %d", r.Line, r.Reply.Attempts, s.attempts[r.Line])
		}
		seen[r.Line] = true
		return nil
	})
	if err == nil && len(seen) != len(s.attempts) {
		err = fmt.Errorf("%d orders, %d answers", len(s.attempts), len(seen))
	}
	return err
}

// crash is one failure of an actor, as the events tell it. Times are in
// milliseconds.
type crash struct {
	failures      int     // that its supervisor has counted
	delay, paused float64 // before the restart: as decided, as it was
	lived         time.Duration
}

// unsure is how far what the events say about times may be from what the
// supervisor saw.
const unsure = 50 * time.Millisecond

// anew reports whether the actor had lived for long enough to be counted anew; in
// doubt the supervisor is believed.
func (c *crash) anew(stable time.Duration) bool {
	if (c.lived - stable).Abs() < unsure {
		return c.failures == 1
	}
	return c.lived >= stable
}

// readCrashes returns the crashes of each actor, in order.
func readCrashes(path string) (map[string][]crash, error) {
	crashes := map[string][]crash{}
	began, failed := map[string]time.Time{}, map[string]time.Time{}
	err := lines(path, func(_ int, text []byte) error {
		var e struct {
			Time      time.Time
			Event     string
			Actor     string
			Directive string
			Delay     float64 `json:"delay_ms"`
			Failures  int
			Lost      int `json:"events_lost"`
		}
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		switch e.Event {
		case "failed":
			if e.Directive != "restart" {
				return fmt.Errorf("%s was not restarted: %s", e.Actor, text)
			}
			crashes[e.Actor] = append(crashes[e.Actor], crash{e.Failures, e.Delay, 0, e.Time.Sub(began[e.Actor])})
			failed[e.Actor] = e.Time
		case "restarted":
			list := crashes[e.Actor]
			if len(list) == 0 {
				return fmt.Errorf("%s was restarted without a failure", e.Actor)
			}
			list[len(list)-1].paused = float64(e.Time.Sub(failed[e.Actor])) / float64(time.Millisecond)
			began[e.Actor] = e.Time
		case "started":
			began[e.Actor] = e.Time
		case "summary":
			if e.Lost > 0 {
				return fmt.Errorf("%d events were lost", e.Lost)
			}
		}
		return nil
	})
	return crashes, err
}

func lines(path string, f func(n int, text []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	scan := bufio.NewScanner(file)
	scan.Buffer(nil, 1<<20)
	for n := 1; scan.Scan(); n++ {
		if len(scan.Bytes()) == 0 {
			continue
		}
		if err := f(n, scan.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return scan.Err()
}
