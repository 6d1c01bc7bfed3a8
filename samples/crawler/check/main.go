// Command check serves web sites, has the crawler read them, and looks from the sites' side, with no code
// of wasmactors, whether all pages were read once and nobody was asked too often, for too much, or for
// what robots.txt forbids.
//
//	check wasmactors samples/crawler
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check wasmactors samples/crawler")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

const (
	agent = "sample-crawler"
	pause = 40 * time.Millisecond

	patience = 2 * time.Minute // building the guest is a part of it
)

// summary is what the crawler says of a crawl.
type summary struct {
	Hosts, Read, Moved, Forbidden, Failed, Skipped int64
}

func check(bin, bundle string) error {
	sites, want := web()
	for _, s := range sites {
		defer s.server.Close()
	}
	c, err := run(bin, bundle)
	if err != nil {
		return err
	}
	defer c.stop()
	var got summary
	if err := c.ask("frontier", map[string]any{"seeds": []string{sites[0].host()}, "pause_ms": pause.Milliseconds(), "agent": agent}, &got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("the crawler says %+v, the sites are %+v", got, want)
	}
	alone, requests := time.Duration(0), 0
	var first, last time.Time
	for _, s := range sites {
		if err := s.polite(agent); err != nil {
			return err
		}
		n := len(s.visits)
		spent := time.Duration(0)
		if n > 0 {
			from, to := s.visits[0].begin, s.visits[n-1].end
			spent = to.Sub(from)
			if first.IsZero() || from.Before(first) {
				first = from
			}
			if to.After(last) {
				last = to
			}
		}
		alone += spent
		requests += n
		fmt.Printf("%-8s  %3d requests in %5.2f s, a pause of %v between them\n", s.name, n, spent.Seconds(), s.pause)
	}
	took := last.Sub(first)
	if took >= alone*3/4 {
		return fmt.Errorf("the crawl took %v, and one host after the other would have taken %v", took, alone)
	}
	if err := indexed(c, sites); err != nil {
		return err
	}
	fmt.Printf("\n%d requests of %d hosts in %.2f s, one after the other they would have taken %.2f s. %d pages were read once each, %d were forbidden,\n"+
		"%d have moved, %d could not be had. No host was asked for two things at a time, or before its pause was over.\n",
		requests, got.Hosts, took.Seconds(), alone.Seconds(), got.Read, got.Forbidden, got.Moved, got.Failed)
	return nil
}

// indexed asks the index, which hears of pages a moment after they were read.
func indexed(c *crawler, sites []*site) error {
	want := []string{sites[1].host() + "/", sites[1].host() + "/open/tea"}
	slices.Sort(want)
	var found []string
	for range 100 {
		if err := c.ask("index", "tea", &found); err != nil {
			return err
		}
		if slices.Sort(found); slices.Equal(found, want) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the index has %v for tea, not %v", found, want)
}

// crawler is the bundle as it runs.
type crawler struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func run(bin, bundle string) (*crawler, error) {
	cmd := exec.Command(bin, "run", bundle, "--input", "-", "--quiet", "--admin", "off", "--state", "none", "--allow", "connect=http://127.0.0.1:*", "--allow", "connect=loopback")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &crawler{cmd, in, lines}, nil
}

func (c *crawler) stop() {
	c.in.Close()
	_ = c.cmd.Wait()
}

// ask sends a line and waits for its answer.
func (c *crawler) ask(to string, message, answer any) error {
	line, err := json.Marshal(map[string]any{"to": to, "message": message})
	if err != nil {
		return err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return err
	}
	late := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	answered := c.out.Scan()
	if !late.Stop() || !answered {
		return fmt.Errorf("%s has not answered within %v: %v", to, patience, c.out.Err())
	}
	var reply struct {
		Kind, Reason string
		Reply        json.RawMessage
	}
	if err := json.Unmarshal(c.out.Bytes(), &reply); err != nil {
		return err
	}
	if reply.Kind != "reply" {
		return fmt.Errorf("%s: %s", to, strings.TrimSpace(c.out.Text()))
	}
	return json.Unmarshal(reply.Reply, answer)
}
