package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCacheCommand shows, shrinks and clears a cache of its own.
func TestCacheCommand(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "cache")
	show := func(t *testing.T) []cachePart {
		t.Helper()
		code, out, stderr := try(t, ctx, "", "cache", "--cache-dir", dir, "--json")
		var parts []cachePart
		if err := json.Unmarshal([]byte(out), &parts); code != 0 || err != nil || len(parts) != 2 {
			t.Fatalf("%d %v\n%s%s", code, err, out, stderr)
		}
		return parts
	}
	if parts := show(t); len(parts[0].Entries)+len(parts[1].Entries) != 0 {
		t.Errorf("%+v", parts)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("looking has made a cache")
	}
	bundle := echoBundle(t, "")
	for range 3 {
		if code, _, stderr := try(t, ctx, "", "check", bundle, "--cache-dir", dir); code != 0 {
			t.Fatal(stderr)
		}
	}
	images := show(t)[1]
	if len(images.Entries) != 1 || images.Bytes == 0 || images.MaxBytes != 768<<20 {
		t.Fatalf("%+v", images)
	}
	if e := images.Entries[0]; e.About != "m" || e.Uses != 2 || e.InUse || time.Since(e.Used) > time.Hour {
		t.Errorf("%+v", e)
	}
	code, out, _ := try(t, ctx, "", "cache", "--cache-dir", dir)
	if code != 0 || !strings.Contains(out, "images: 1 entry, ") || !strings.Contains(out, "768 MiB") || !strings.Contains(out, "2 uses, last ") || !strings.Contains(out, "  m\n") {
		t.Errorf("%d\n%s", code, out)
	}
	for _, c := range []struct {
		args []string
		left int
		says string
	}{
		{[]string{"--older-than", "1h"}, 1, "images: removed 0 entries"},
		{[]string{"--shrink-to", "1GiB"}, 1, "images: removed 0 entries"},
		{[]string{"--shrink-to", "1KiB"}, 0, "images: removed 1 entry"},
		{[]string{"--older-than", "0s"}, 0, "images: removed 1 entry"},
		{[]string{"--clear"}, 0, "images: removed 1 entry"},
	} {
		if code, _, stderr := try(t, ctx, "", "check", bundle, "--cache-dir", dir); code != 0 {
			t.Fatal(stderr)
		}
		code, out, stderr := try(t, ctx, "", append([]string{"cache", "--cache-dir", dir}, c.args...)...)
		if code != 0 || !strings.Contains(out, c.says) {
			t.Errorf("%v: %d\n%s%s", c.args, code, out, stderr)
		}
		if left := len(show(t)[1].Entries); left != c.left {
			t.Errorf("%v: %d entries are left", c.args, left)
		}
	}
	for _, args := range [][]string{
		{"--older-than", "soon"}, {"--older-than", "-1h"}, {"--older-than", "xd"}, {"--shrink-to", "much"}, {"--cache-size", "0"},
		{"--clear", "--older-than", "1h"}, {"--cache-dir", "none"}, {"more"},
	} {
		if code, out, _ := try(t, ctx, "", append([]string{"cache"}, args...)...); code != 2 {
			t.Errorf("%v: %d %s", args, code, out)
		}
	}
}

// TestCacheSize: the bound holds for whoever fills the cache.
func TestCacheSize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	ctx := context.Background()
	for n := range 3 {
		bundle := echoBundle(t, "limits: {stack: "+strings.Repeat("1", n+5)+"}\n") // three images
		if code, _, stderr := try(t, ctx, "", "check", bundle, "--cache-dir", dir, "--cache-size", "32KiB"); code != 0 {
			t.Fatal(stderr)
		}
	}
	_, out, _ := try(t, ctx, "", "cache", "--cache-dir", dir, "--json")
	var parts []cachePart
	if err := json.Unmarshal([]byte(out), &parts); err != nil {
		t.Fatal(err)
	}
	if p := parts[1]; p.Bytes > 24<<10 || len(p.Entries) == 0 || len(p.Entries) == 3 {
		t.Errorf("%d bytes in %d entries", p.Bytes, len(p.Entries))
	}
}

// TestUnusableCache: the command says that nothing can be kept, and goes on.
func TestUnusableCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := try(t, context.Background(), "", "check", echoBundle(t, ""), "--cache-dir", filepath.Join(file, "x"))
	if code != 0 || !strings.Contains(stderr, " WARN ") || !strings.Contains(stderr, "cache directory cannot be used") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestAges(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "0s": 0, "90m": 90 * time.Minute, "7d": 168 * time.Hour, "0.5d": 12 * time.Hour, "2w": 336 * time.Hour} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0 seconds", time.Second: "1 second", 119 * time.Second: "119 seconds", 3 * time.Minute: "3 minutes", 5 * time.Hour: "5 hours", 72 * time.Hour: "3 days"} {
		if got := humanAge(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}

// What is warned of before a bundle runs is an event with --json, like all that it says then.
func TestWarningsAreEvents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := try(t, context.Background(), "", "run", echoBundle(t, ""), "--cache-dir", filepath.Join(file, "x"), "--input", os.DevNull, "--json")
	for line := range strings.Lines(stderr) {
		var e struct{ Event, Level, Text string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event == "" {
			t.Errorf("%v: %s", err, line)
		} else if e.Event == "warning" && e.Level == "WARN" && strings.Contains(e.Text, "cache directory cannot be used") {
			return
		}
	}
	t.Errorf("it is not warned of: %s", stderr)
}
