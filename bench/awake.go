package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// spareMemory is what awake leaves of the machine's memory: with less it gives up.
const spareMemory = 3 << 30

// awake starts guests of standard Go, which stay awake, and sends each some messages. It fails if
// one of them is lost, fails or is put to sleep, or answers too little or too much.
func awake(args []string) error {
	flags := flag.NewFlagSet("awake", flag.ExitOnError)
	n := flags.Int("n", 100_000, "guests")
	rounds := flags.Int("rounds", 2, "messages to each")
	memory := flags.Int64("memory", 0, "MiB that the system may hold; 0: as by default")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *n < 1 || *rounds < 1 || *memory < 0 || flags.NArg() != 0 {
		return errors.New("awake [-n GUESTS] [-rounds MESSAGES] [-memory MIB], the first two at least 1")
	}
	l, clean, err := newLab(os.Stdout, true, 1)
	if err != nil {
		return err
	}
	defer clean()
	code, err := os.ReadFile(filepath.Join(l.guests, "go.wasm"))
	if err != nil {
		return err
	}
	// The bounds are those of a system by default; its idle guests would sleep after a day.
	p, err := newProductWith(l.ctx, code, runtime.GOMAXPROCS(0), func(c host.Config) host.Config {
		if *memory > 0 {
			c = c.WithMemory(*memory << 20)
		}
		return c.WithIdleAfter(24 * time.Hour)
	})
	if err != nil {
		return err
	}
	return errors.Join(p.awake(*n, *rounds), p.close(l.ctx))
}

func (p *product) awake(n, rounds int) error {
	answers := make(map[abi.Ref]int, n) // by guest; the counter's until all is counted
	var counted atomic.Int64
	counter, err := p.sys.Spawn("counter", host.Func(func(_ *host.Context, m host.Message) error {
		answers[m.Sender.UID()]++
		counted.Add(1)
		return nil
	}).WithLimits(host.Limits{Mailbox: n*rounds + 1, MailboxBytes: 1 << 30, Held: 1 << 30}))
	if err != nil {
		return err
	}
	props := host.Guest(p.image, "ping").WithCapabilities(host.Capabilities{Send: []string{counter.Path()}})
	before, err := status()
	if err != nil {
		return err
	}
	began, asleep := time.Now(), 0
	all := make([]host.Ref, 0, n)
	for len(all) < n {
		ref, err := p.sys.Spawn("", props)
		if err != nil {
			return fmt.Errorf("after %d guests: %w", len(all), err)
		}
		if err := p.sys.TellFrom(counter, ref, number(1)); err != nil { // answered with one message
			return fmt.Errorf("to guest %d: %w", len(all), err)
		}
		if all = append(all, ref); len(all)%1000 == 0 {
			if err := enoughMemory(); err != nil {
				return fmt.Errorf("after %d guests: %w", len(all), err)
			}
		}
	}
	for round := 1; ; round++ {
		if err := waitCounted(&counted, int64(n*round)); err != nil {
			return fmt.Errorf("message %d: %w; %+v", round, err, p.sys.View().Stats())
		}
		asleep = max(asleep, p.sys.View().Stats().Asleep)
		fmt.Fprintf(os.Stderr, "message %d to %d guests was answered after %v\n", round, n, time.Since(began).Round(time.Millisecond))
		if round == rounds {
			break
		}
		for _, ref := range all {
			if err := p.sys.TellFrom(counter, ref, number(1)); err != nil {
				return fmt.Errorf("message %d: %w", round+1, err)
			}
		}
	}
	took := time.Since(began)
	after, err := status()
	if err != nil {
		return err
	}
	for _, ref := range all {
		if got := answers[ref.UID()]; got != rounds {
			return fmt.Errorf("%v has answered %d of %d messages", ref, got, rounds)
		}
	}
	st := p.sys.View().Stats()
	fmt.Printf("%d guests of standard Go, %d messages each, %v: %d asleep, %d crashes, %d dead letters\n",
		n, rounds, took.Round(time.Millisecond), asleep, st.Crashes, st.DeadLetters)
	each := func(what, key string) {
		fmt.Printf("%s: %.1f KiB a guest, %.2f GiB\n", what, (after[key]-before[key])/1024/float64(n), after[key]/(1<<30))
	}
	each("private memory", "RssAnon")
	each("page tables", "VmPTE")
	var held int64
	for _, ref := range all {
		h, err := p.sys.View().Held(ref)
		if err != nil {
			return err
		}
		held += h.Total()
	}
	fmt.Printf("on their accounts: %.1f KiB a guest\n", float64(held)/1024/float64(n))
	fmt.Printf("mappings: %.0f of %s\n", after["maps"], strings.TrimSpace(mostMaps()))
	if asleep+int(st.Crashes)+int(st.DeadLetters) != 0 {
		return errors.New("not all were awake all the time")
	}
	return nil
}

// waitCounted waits as long as the count gets on.
func waitCounted(counted *atomic.Int64, want int64) error {
	for before := int64(-1); ; {
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if n := counted.Load(); n >= want {
				return nil
			}
		}
		n := counted.Load()
		if n == before {
			return fmt.Errorf("%w: %d of %d answers", errStuck, n, want)
		}
		before = n
		if err := enoughMemory(); err != nil {
			return err
		}
	}
}

// status is what the kernel says of this process, in bytes, and its number of mappings.
func status() (map[string]float64, error) {
	runtime.GC()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	is, err := kibibytes("/proc/self/status")
	if err != nil {
		return nil, err
	}
	is["maps"] = float64(strings.Count(string(maps), "\n"))
	return is, nil
}

// kibibytes reads the lines of a file that are amounts of memory, in bytes.
func kibibytes(file string) (map[string]float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	is := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if f := strings.Fields(rest); len(f) == 2 && f[1] == "kB" {
			n, err := strconv.ParseFloat(f[0], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, name, err)
			}
			is[name] = n * 1024
		}
	}
	return is, nil
}

// enoughMemory fails before the machine has none left.
func enoughMemory() error {
	is, err := kibibytes("/proc/meminfo")
	if err != nil {
		return err
	}
	if free, ok := is["MemAvailable"]; ok && free < spareMemory {
		return fmt.Errorf("only %.1f GiB of the machine's memory are left", free/(1<<30))
	}
	return nil
}

func mostMaps() string {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return "an unknown number"
	}
	return string(text)
}
