// Command check looks at a run of the sample from outside, with no code of
// wasmactors: every order was accepted in the end, the clients have crashed as
// often as the script says, and each waited as the curve of its source says.
//
//	check input.ndjson replies.ndjson events.ndjson
package main

import (
	"fmt"
	"math"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: check input.ndjson replies.ndjson events.ndjson")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func check(input, replies, events string) error {
	s, err := readScript(input)
	if err != nil {
		return err
	}
	if err := s.answered(replies); err != nil {
		return err
	}
	crashes, err := readCrashes(events)
	if err != nil {
		return err
	}
	if got := len(crashes["/user/service"]); got != s.crashes {
		return fmt.Errorf("the service has crashed %d times, the script says %d", got, s.crashes)
	}
	total := 0
	fmt.Printf("%-18s  %-10s  milliseconds before each restart; then those of the second outage\n", "", "growth")
	for _, st := range styles {
		list := crashes["/user/"+st.name+"/client"]
		outages := s.outages[st.name]
		if err := waits(st, outages, list); err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
		show(st.name, outages, list)
		total += len(list)
	}
	fmt.Printf("\nAll %d orders were accepted. The clients have crashed %d times and the service %d times, and each client has waited as its curve says.\n",
		len(s.attempts), total, s.crashes)
	return nil
}

// waits compares the delays of a client with its curve.
func waits(st style, outages []int, list []crash) error {
	due := 0
	for _, n := range outages {
		due += n
	}
	if len(list) != due {
		return fmt.Errorf("%d crashes, the script says %d", len(list), due)
	}
	if len(outages) == 0 {
		return fmt.Errorf("the script has no trouble for it")
	}
	outage, within, count := 0, 0, 0
	for i, c := range list {
		if within == outages[outage] {
			outage, within = outage+1, 0
		}
		within++
		count++
		if st.stable == 0 {
			count = within
		} else if c.anew(st.stable) {
			count = 1
		}
		if c.failures != count {
			return fmt.Errorf("crash %d is said to be failure %d, it is %d", i+1, c.failures, count)
		}
		if err := st.allowed(count, c.delay); err != nil {
			return err
		}
		if c.paused < c.delay-1 {
			return fmt.Errorf("crash %d: restarted after %.1f ms, the delay was %.1f ms", i+1, c.paused, c.delay)
		}
	}
	return nil
}

// show prints the delays of a client, and how they grow on a logarithmic scale.
func show(name string, outages []int, list []crash) {
	var bars, numbers strings.Builder
	for i, c := range list {
		if i == outages[0] {
			numbers.WriteString("   |")
		}
		if i < outages[0] {
			bars.WriteRune(bar(c.delay))
		}
		digits := 0
		if c.delay < 9.95 && c.delay > 0 {
			digits = 1
		}
		fmt.Fprintf(&numbers, " %5.*f", digits, c.delay)
	}
	fmt.Printf("%-18s  %-10s %s\n", name, bars.String(), numbers.String())
}

// bar is an eighth to eight eighths for 1 ms to 600 ms, and a dot for nothing.
func bar(ms float64) rune {
	if ms == 0 {
		return '·'
	}
	const heights = "▁▂▃▄▅▆▇█"
	r := []rune(heights)
	x := math.Log(max(ms, 1)) / math.Log(600)
	return r[min(int(x*float64(len(r))), len(r)-1)]
}
