package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// The lines of each feed count from 1, also those of the feed before that are answered late, however the answers arrive.
func TestAnswersOfSeveralFeeds(t *testing.T) {
	said := `{"line":2,"to":"a"}` + "\n" + `{"line":3,"reply":"` + strings.Repeat("x", 100) + `"}` + "\n" + "{}\n" + `{"line":1}` + "\n" + `{"line":12,"reply":{"line":4}}` + "\n"
	want := `{"line":2,"to":"a"}` + "\n" + `{"line":1,"reply":"` + strings.Repeat("x", 100) + `"}` + "\n" + "{}\n" + `{"line":1}` + "\n" + `{"line":10,"reply":{"line":4}}` + "\n"
	for size := 1; size <= len(said); size++ {
		var got bytes.Buffer
		a := &answers{to: &got}
		a.feed(0)
		a.feed(2)
		for at := 0; at < len(said); at += size {
			if _, err := a.Write([]byte(said[at:min(at+size, len(said))])); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want {
			t.Fatalf("in pieces of %d bytes:\n%s\nwant\n%s", size, &got, want)
		}
	}
	a := &answers{to: failing{}}
	if _, err := a.Write([]byte("{}\n")); err == nil || !a.broken() {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no") }

// What a node says as JSON keeps its keys, and has the name of the node; of a line that is too long there is a note.
func TestLinesOfANodeAreRelayed(t *testing.T) {
	var out bytes.Buffer
	n := &devNode{devNodes: &devNodes{env: &environment{stderr: &out, json: true}, console: &console{json: true}}, name: "n2"}
	n.relay(strings.NewReader(`{"event":"cluster","node":3}` + "\n" + `{"text":"` + strings.Repeat("x", 2*longestNodeLine) + `"}` + "\nplain\n"))
	var got []map[string]any
	for line := range strings.Lines(out.String()) {
		var x map[string]any
		if err := json.Unmarshal([]byte(line), &x); err != nil || x["dev_node"] != "n2" {
			t.Errorf("%v: %.200s", err, line)
		}
		got = append(got, x)
	}
	if len(got) != 3 || got[0]["node"] != 3.0 || got[1]["text"] != "a line of more than 65536 bytes is left out" || got[2]["text"] != "plain" {
		t.Errorf("%v", got)
	}
}
