//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

var crewCode = sync.OnceValues(func() ([]byte, error) { return guesttest.Build("../../docs/examples/crew/guest") })

// front has the boss of docs/examples/crew, and back takes its workers, whose code it has not.
const (
	frontOfCrew = "wasmactors: 1\nname: crew\nmodules: {m: {wasm: crew.wasm}}\ncluster: {roles: [front]}\nactors:\n  boss: {type: m/boss, capabilities: {spawn: ['worker@back']}}\n"
	backOfCrew  = "wasmactors: 1\nname: crew\nmodules: {m: {wasm: register.wasm}}\ncluster: {roles: [back], accept: {types: [m/worker], fetch: [m/worker], from: [front]}}\nactors: {idle: {type: m/register}}\n"
)

// told asks the boss, and returns the answer as text, or the reason.
func (p *process) told(message string) (text string, ok bool) {
	a := <-p.put("/user/boss", message)
	if a.Kind != "reply" {
		return a.Reason, false
	}
	if json.Unmarshal(a.Reply, &text) != nil {
		return string(a.Reply), true
	}
	return text, true
}

// fieldOfCrew starts three nodes: the first has the boss, and the others take workers, whose code they fetch.
func fieldOfCrew(t *testing.T) *field {
	t.Helper()
	f := fieldOf(t, 3, frontOfCrew)
	code, err := crewCode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"crew.wasm": string(code), "back.yaml": backOfCrew} {
		if err := os.WriteFile(filepath.Join(f.bundle, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range f.nodes[1:] {
		p.file, p.args = "back.yaml", []string{"--allow", "code=m/worker"}
	}
	f.start(f.nodes...)
	return f
}

// Children of one node run on two others, in processes, with code that those fetch. They are restarted there, and stopped from here; when
// their node is killed the parent is told, once.
func TestChildrenOnOtherNodes(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("three processes for some seconds")
	}
	f := fieldOfCrew(t)
	front := f.nodes[0]
	type who struct{ node, life, asked uint64 }
	ask := func(name string) (w who, err error) {
		text, ok := front.told("who " + name)
		var all [3]uint64
		if !ok || json.Unmarshal([]byte(text), &all) != nil {
			return w, fmt.Errorf("%s: %s", name, text)
		}
		return who{all[0], all[1], all[2]}, nil
	}
	crew, on := map[string]who{}, map[uint64][]string{}
	for i := 0; len(on) < 2 && i < 40; i++ {
		name := fmt.Sprint("w", i)
		if text, ok := front.told("hire " + name); !ok {
			t.Fatal(text)
		}
		w, err := ask(name)
		if err != nil {
			t.Fatal(err)
		}
		crew[name], on[w.node] = w, append(on[w.node], name)
	}
	two, three := uint64(f.numberOf(f.nodes[1])), uint64(f.numberOf(f.nodes[2]))
	if len(on[two]) == 0 || len(on[three]) == 0 {
		t.Fatalf("the workers are on %v", on)
	}
	one, other := on[two][0], on[three][0]

	// Both nodes show the child: here what stands for it, there itself.
	look := func(p *process, what ...string) string {
		code, stdout, stderr := try(t, context.Background(), "", append(what, "--bundle", fmt.Sprint(p.cmd.Process.Pid))...)
		if code != 0 {
			t.Errorf("%v: %s", what, stderr)
		}
		return stdout
	}
	if text := look(front, "tree", "/user/boss"); !strings.Contains(text, "─ "+one+"  remote/worker") {
		t.Errorf("tree here:\n%s", text)
	}
	if text := look(f.nodes[1], "tree", "/system"); !strings.Contains(text, "remote/keeper") || !strings.Contains(text, "─ "+one+"  worker") {
		t.Errorf("tree there:\n%s", text)
	}

	// It fails, and is restarted where it is.
	if text, ok := front.told("crash " + one); ok || !strings.Contains(text, "slipped") {
		t.Errorf("a crash ends with %q", text)
	}
	w, err := ask(one)
	if err != nil || w.node != crew[one].node || w.life == crew[one].life || w.asked != 1 {
		t.Errorf("after its restart: %+v, it was %+v, %v", w, crew[one], err)
	}

	// It is stopped from here.
	gone := func(name, why string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			text, _ := front.told("gone")
			if n := strings.Count(text, name+": "); n > 0 {
				if n != 1 || !strings.Contains(text, name+": "+why) {
					t.Errorf("the boss is told %q", text)
				}
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the boss is not told that %s has ended: %q", name, text)
			}
		}
	}
	if text, ok := front.told("stop " + one); !ok {
		t.Error(text)
	}
	gone(one, "stopped")
	for end := time.Now().Add(patience); strings.Contains(look(f.nodes[1], "tree", "/system"), "─ "+one+" "); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the child does not end on its node")
		}
	}

	// The node of the others is killed.
	f.nodes[2].kill()
	killed := time.Now()
	gone(other, "node gone")
	if took := time.Since(killed); took > lease+time.Second+slack {
		t.Errorf("the boss was told after %v", took)
	}
	if text := look(front, "tree", "/user/boss"); strings.Contains(text, "─ "+other+" ") {
		t.Errorf("after that tree shows:\n%s", text)
	}
	if text, ok := front.told("hire " + other); !ok {
		t.Error(text)
	}
	if w, err := ask(other); err != nil || w.node != two || w.asked != 1 {
		t.Errorf("the one that was hired again: %+v, %v", w, err)
	}

	// The node leaves, as in a roll: its children do not move. (No majority keeps the directory then, so this is the last.)
	if text, ok := front.told("hire last"); !ok {
		t.Error(text)
	}
	if w, err := ask("last"); err != nil || w.node != two {
		t.Errorf("%+v, %v", w, err)
	}
	look(f.nodes[1], "cluster", "leave")
	gone("last", "node gone")
}

// The command of docs/guide/elsewhere.md runs on three nodes, and the lines of its input are answered as the page says.
func TestTheGuideToChildrenElsewhere(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	block := regexp.MustCompile("(?ms)^```console\n[$] wasmactors ([^\n]+)\n(.*?)^```$").FindStringSubmatch(mustRead(t, "../../docs/guide/elsewhere.md"))
	if block == nil {
		t.Fatal("the page has no command")
	}
	args := append([]string{"wasmactors"}, strings.Fields(strings.Replace(block[1], "docs/", "../../docs/", 1))...)
	t.Setenv("WASMACTORS_TEST_MAIN", "1")
	t.Setenv("WASMACTORS_CACHE_DIR", testCache)
	ctx, end := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	out := newWatched()
	var errs said
	over := make(chan struct{})
	go func() {
		defer close(over)
		run(ctx, nil, append(args, "--compiler", "go"), in, out, &errs)
	}()
	defer func() {
		end()
		_ = feed.Close()
		<-over
		if t.Failed() {
			t.Log(errs.String())
		}
	}()
	lines := strings.Split(strings.TrimSpace(block[2]), "\n")
	for i := 0; i+1 < len(lines); i += 2 { // one at a time: answers come in any order
		if _, err := io.WriteString(feed, lines[i]+"\n"); err != nil {
			t.Fatal(err)
		}
		out.until(t, fmt.Sprintf(`{"line":%d,`, i/2+1), 1)
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		got = append(got, alike(line))
	}
	for i := 1; i < len(lines); i += 2 {
		if want := alike(lines[i]); i/2 >= len(got) || got[i/2] != want {
			t.Errorf("line %d is answered with\n%q\nand not\n%s", i/2+1, got, want)
		}
	}
	if len(lines) < 8 {
		t.Errorf("only %d lines", len(lines))
	}
}
