package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// keyedPiece measures what a keyed actor of the Go SDK takes of the process while it sleeps: so many of one keeper,
// each has handled a message. More than fit into the time are not made: the figure is that of those which were.
func keyedPiece(l *lab) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.budget+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "keyed", strconv.Itoa(l.scale(1_000_000)), (l.budget * 3 / 4).String())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var each float64
	var n int
	if _, err := fmt.Sscan(string(out), &each, &n); err != nil {
		return err
	}
	return l.report.alone(keyedBench, "KiB", each/1024, fmt.Sprintf("%d asleep", n))
}

// measureKeyed is what a process of its own does: it makes so many for so long, and prints bytes each and how many.
func measureKeyed(args []string) error {
	if len(args) != 2 {
		return errors.New("keyed N TIME")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	long, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	code, err := guestFile("go")
	if err != nil {
		return err
	}
	p, err := newProductWith(ctx, code, 1, func(c host.Config) host.Config {
		return c.WithMemory(0).WithMostAwake(1).WithIdleAfter(time.Millisecond)
	})
	if err != nil {
		return err
	}
	worker := host.Guest(p.image, "bench").WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}})
	keeper, err := p.sys.Spawn("keeper", keyed.New(worker).WithIdle(24*time.Hour).WithMax(max(n, 1000)).WithMaxBytes(1<<40).Props())
	if err != nil {
		return err
	}
	m, made := packet(opHandled, 0, 32), 0
	one := func(ctx *host.Context) error {
		made++
		return ctx.Tell(keeper, keyed.For("customer-"+strconv.Itoa(made), m))
	}
	asleep := func() error {
		for end := time.Now().Add(patience); p.sys.View().Stats().Asleep < made; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Errorf("only %d of %d are asleep", p.sys.View().Stats().Asleep, made)
			}
		}
		time.Sleep(100 * time.Millisecond) // what was given back is given to the system
		return nil
	}
	if err := p.drive(1000, one); err != nil {
		return err
	}
	if err := asleep(); err != nil {
		return err
	}
	before, err := resident()
	if err != nil {
		return err
	}
	first, end := made, time.Now().Add(long)
	for made < n && time.Now().Before(end) {
		if err := p.drive(min(1000, n-made), one); err != nil {
			return err
		}
	}
	if err := asleep(); err != nil {
		return err
	}
	after, err := resident()
	if err != nil {
		return err
	}
	fmt.Println((after-before)/float64(max(1, made-first)), made)
	return p.sys.Close(ctx)
}
