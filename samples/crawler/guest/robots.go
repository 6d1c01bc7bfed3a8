package main

import (
	"strconv"
	"strings"
	"time"
)

// robots are the rules of a robots.txt for one crawler, as RFC 9309 has them: of all rules that match, the
// longest counts, and of two as long the one that allows. Crawl-delay is not in the RFC, but polite.
type robots struct {
	rules []rule
	delay time.Duration
}

type rule struct {
	pattern string
	allow   bool
}

// Bounds of what a robots.txt may say.
const (
	mostRules  = 1000
	longestGap = time.Minute
)

var (
	allowAll  = &robots{}
	forbidAll = &robots{rules: []rule{{"/", false}}}
)

// parseRobots reads the groups for the crawler's name, or else those for *.
func parseRobots(text, agent string) *robots {
	agent = strings.ToLower(agent)
	var own, others robots
	found := false
	mine, all, naming := false, false, false // whom the group is for; naming: its rules are still to come
	for len(text) > 0 {
		var line string
		line, text, _ = strings.Cut(strings.TrimLeft(text, "\r\n\ufeff"), "\n")
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if key == "user-agent" {
			if !naming {
				mine, all, naming = false, false, true
			}
			name := strings.ToLower(value)
			mine = mine || name != "*" && name != "" && name == agent
			all = all || name == "*"
			found = found || mine
			continue
		}
		naming = false
		for _, g := range []struct {
			counts bool
			to     *robots
		}{{mine, &own}, {all, &others}} {
			if g.counts {
				g.to.add(key, value)
			}
		}
	}
	if found {
		return &own
	}
	return &others
}

func (r *robots) add(key, value string) {
	switch key {
	case "allow", "disallow":
		if value != "" && len(r.rules) < mostRules {
			r.rules = append(r.rules, rule{value, key == "allow"})
		}
	case "crawl-delay":
		if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
			r.delay = time.Duration(min(s, longestGap.Seconds()) * float64(time.Second))
		}
	}
}

// allows reports whether a path, with its query, may be asked for.
func (r *robots) allows(path string) bool {
	longest, allowed := 0, true
	for _, x := range r.rules {
		if n := len(x.pattern); n >= longest && matches(x.pattern, path) && (n > longest || x.allow) {
			longest, allowed = n, x.allow
		}
	}
	return allowed || path == "/robots.txt"
}

// matches reports whether a pattern matches the beginning of a path: * is any run of characters, and $ at
// the end is the end of the path.
func matches(pattern, path string) bool {
	pattern, whole := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(path, parts[0]) {
		return false
	}
	rest := path[len(parts[0]):]
	for i, part := range parts[1:] {
		if whole && i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return !whole || rest == ""
}
