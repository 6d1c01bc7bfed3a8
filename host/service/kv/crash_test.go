package kv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// crashEnv makes this test binary the process that is killed.
const crashEnv = "WASMACTORS_KV_CRASH"

func crashArgs() string { return os.Getenv(crashEnv) }

const (
	crashWriters = 8
	crashBatch   = 5
)

// crashChild writes as much as it can, and says on its output what was acknowledged:
// "writer durability number".
func crashChild() {
	eng, err := openOnDisk(crashArgs(), vfs.Default, quiet())
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	s, err := openStore(eng, host.RealClock(), quiet(), nil)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	for w := range crashWriters {
		go func() {
			n := int64(0)
			if e, err := s.get("n", crashKey(w, 0)); err == nil {
				n, _ = strconv.ParseInt(strings.Fields(string(e.Value))[0], 10, 64)
			}
			for {
				n++
				// Some are larger than a block of the log, and some fill its tables.
				pad := strings.Repeat("x", []int{0, 10, 1000, 40_000}[n%4])
				ops := make([]Op, 0, crashBatch+1)
				for i := range crashBatch {
					ops = append(ops, put(crashKey(w, i), fmt.Sprint(n, " ", pad)))
				}
				ops = append(ops, Op{Kind: OpAdd, Key: "count", Delta: 1})
				d := Durability(w % 2) // Disk and OS
				_, version, err := s.change(context.Background(), "n", Quota{}, ops, d)
				mu.Lock()
				if err != nil {
					fmt.Println("error", err)
				} else {
					fmt.Println("ack", w, n, version)
				}
				mu.Unlock()
			}
		}()
	}
	time.Sleep(time.Minute)
	os.Exit(2) // nobody has killed it
}

func crashKey(writer, i int) string { return fmt.Sprintf("w%d/%d", writer, i) }

// rounds is how often something long is tried: WASMACTORS_LONG says.
func rounds(t *testing.T, short, usual int) int {
	if n, err := strconv.Atoi(os.Getenv("WASMACTORS_LONG")); err == nil {
		return n
	}
	return thorough.SlowOf(short, usual)
}

// What was acknowledged is there after a kill -9 in the middle of it, batches whole, with the
// counts that they should have, and no version comes again.
func TestKillUnderLoad(t *testing.T) {
	dir := t.TempDir()
	acked := make([]int64, crashWriters)
	highest := uint64(0)
	acks := 0
	for round := range rounds(t, 3, 6) {
		n, v := killOnce(t, dir, acked, round%3 == 2)
		acks += n
		if n > 0 && v < highest {
			t.Fatalf("round %d: version %d after %d", round, v, highest)
		}
		highest = checkCrashed(t, dir, acked, max(highest, v))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if acks == 0 {
		t.Error("nothing was acknowledged")
	}
	t.Logf("%d writes were acknowledged", acks)
}

// killOnce runs the child for a while and notes what it acknowledges. The while begins with the
// first that is, or with the process, which may open the store then.
func killOnce(t *testing.T, dir string, acked []int64, early bool) (acks int, version uint64) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	after := func(d time.Duration) {
		timer := time.AfterFunc(d, func() { _ = cmd.Process.Kill() })
		t.Cleanup(func() { timer.Stop() })
	}
	while := time.Duration(50+rand.IntN(250)) * time.Millisecond
	if early {
		after(while)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break // half a line was not acknowledged
		}
		var w int
		var n int64
		var v uint64
		if _, err := fmt.Sscanf(line, "ack %d %d %d", &w, &n, &v); err != nil {
			t.Errorf("the child says %q", line)
			continue
		}
		if n <= acked[w] {
			t.Errorf("writer %d: %d after %d", w, n, acked[w])
		}
		acked[w] = n
		if acks++; acks == 1 && !early {
			after(while)
		}
		version = max(version, v)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != -1 && cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the child has ended by itself: %v", cmd.ProcessState)
	}
	return acks, version
}

// checkCrashed opens what is left, and returns the highest version in it.
func checkCrashed(t *testing.T, dir string, acked []int64, highest uint64) uint64 {
	eng, err := openOnDisk(dir, vfs.Default, quiet())
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(eng, host.RealClock(), quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	total := int64(0)
	for w := range crashWriters {
		var first *Entry
		for i := range crashBatch {
			e, err := s.get("n", crashKey(w, i))
			if err != nil {
				if acked[w] != 0 || service.CodeOf(err) != service.NotFound || first != nil {
					t.Errorf("writer %d, key %d: acknowledged %d, found %v", w, i, acked[w], err)
				}
				continue
			}
			if first == nil && i == 0 {
				first = e
			}
			if first == nil || string(e.Value) != string(first.Value) || e.Version != first.Version {
				t.Errorf("writer %d: half a batch is there", w)
			}
		}
		if first == nil {
			continue
		}
		n, _ := strconv.ParseInt(strings.Fields(string(first.Value))[0], 10, 64)
		if n < acked[w] {
			t.Errorf("writer %d: acknowledged %d, found %d", w, acked[w], n)
		}
		acked[w] = n // what was not acknowledged may be there
		total += n
	}
	if e, err := s.get("n", "count"); total > 0 && (err != nil || e.Count != total) {
		t.Errorf("%d batches are there, and counted %v %v", total, e, err)
	}
	list, err := s.namespaces()
	if err != nil {
		t.Fatal(err)
	}
	want := Usage{}
	cursor := []byte(nil)
	for {
		page, next, err := s.list(listing{ns: "n", cursor: cursor, values: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			want.Keys++
			want.Bytes += cost(e.Key, &record{counter: e.Counter, value: e.Value})
		}
		if cursor = next; next == nil {
			break
		}
	}
	var got Usage // none, if it was killed before the first write
	if len(list) > 0 {
		got = list[0].Usage
	}
	if len(list) > 1 || got != want {
		t.Errorf("usage is %+v, and should be %+v", list, want)
	}
	v := s.must(t, put("after", ""))
	if v <= highest {
		t.Errorf("version %d was given before, up to %d", v, highest)
	}
	s.must(t, Op{Kind: OpDelete, Key: "after"})
	return v + 1
}

// runChild is what the child says of a store that it cannot open.
func runChild(t *testing.T, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
