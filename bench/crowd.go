package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/host"
)

// crowdAwake is how many of a crowd have an instance at a time.
const crowdAwake = 10_000

// crowd measures what many actors cost: each is made, handles a message and goes to
// sleep when it is not among the last ones; then two of them talk, and some are
// woken. Each size runs in a process of its own.
func crowd(l *lab) error {
	var first float64
	for _, n := range []int{100, 10_000, 1_000_000} {
		n = max(100, l.scale(n))
		if l.over() {
			if err := l.report.write(record{Bench: fmt.Sprintf("resident memory each of %d live actors", n), Who: "ours", Missing: "no time was left"}); err != nil {
				return err
			}
			continue
		}
		out, err := crowdOutput(n)
		if err != nil {
			return err
		}
		var resident, made, message, woken float64
		if _, err := fmt.Sscan(out, &resident, &made, &message, &woken); err != nil {
			return err
		}
		of := fmt.Sprintf(" of %d live actors", n)
		if n == 100 {
			first = message
		}
		for _, f := range []error{
			l.report.alone("resident memory each"+of, "KiB", resident/1024, fmt.Sprint("wat guest; at most ", crowdAwake, " have an instance")),
			l.report.alone("making and a first message, each"+of, "us", made/1e3, ""),
			l.report.compare("a message between two"+of, "ns/message", message, first, "the baseline is with 100"),
			l.report.alone("a message to any"+of+", there and back", "us", woken/1e3, "most of them sleep"),
		} {
			if f != nil {
				return f
			}
		}
	}
	return nil
}

// crowdOutput is what a process of its own prints.
func crowdOutput(n int) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(exe, "crowd", strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

// measureCrowd is what a child does.
func (l *lab) measureCrowd(size string) error {
	n, err := strconv.Atoi(strings.TrimSpace(size))
	if err != nil {
		return err
	}
	p, err := newProductWith(l.ctx, pingWAT, 1, func(c host.Config) host.Config {
		return c.WithMostAwake(crowdAwake).WithIdleAfter(0)
	})
	if err != nil {
		return err
	}
	all := make([]host.Ref, 0, n)
	one := func(ctx *host.Context) error {
		ref, err := ctx.Spawn("", p.props)
		if err != nil {
			return err
		}
		all = append(all, ref)
		return ctx.Tell(ref, number(0))
	}
	if err := p.drive(50, one); err != nil {
		return err
	}
	before, err := resident()
	if err != nil {
		return err
	}
	made, err := perOp(n-50, func(n int) error { return p.drive(n, one) })
	if err != nil {
		return err
	}
	after, err := resident()
	if err != nil {
		return err
	}
	ours, err := p.pinger()
	if err != nil {
		return err
	}
	message, err := (&lab{rounds: 5}).repeat(func() (float64, error) { return perOp(300_000, ours) })
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	woken, err := (&lab{rounds: 5}).repeat(func() (float64, error) {
		return perOp(10_000, func(n int) error {
			return p.drive(n, func(ctx *host.Context) error { return ctx.Tell(all[rnd.IntN(len(all))], number(0)) })
		})
	})
	fmt.Println((after-before)/float64(n-50), made, message, woken)
	return err
}
