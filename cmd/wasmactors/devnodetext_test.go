package main

import (
	"bytes"
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
