package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// report writes the mutants of a package that were not killed, in the order of the code.
func report(w io.Writer, path string, ms []*mutant, took time.Duration) (left int) {
	count := map[string]int{}
	for _, m := range ms {
		count[m.Status]++
		if m.Status == survived || m.Status == unreached {
			left++
			fmt.Fprintf(w, "%s/%s:%d: %s: %s (%s)\n\t%s\n", path, m.File, m.Line, m.Kind, m.Source, m.Status, m.key())
		}
	}
	fmt.Fprintf(w, "%s: %d mutants, %d killed (%d by their time), %d survived, %d reached by no test, %d accepted, %d not tried; %v\n", path, len(ms),
		count[killed]+count[timedOut], count[timedOut], count[survived], count[unreached], count[fine], count[untried], took.Round(time.Second))
	return left
}

// acceptances are mutants that change nothing that matters.
type acceptances struct {
	reasons map[string]string // by package and key
	used    map[string]bool
}

// readAccepted reads a file of lines "package/key", each with the reason in the lines
// before it that begin with "# ". A file that does not exist is empty.
func readAccepted(name string) (*acceptances, error) {
	a := &acceptances{map[string]string{}, map[string]bool{}}
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reason, fresh := "", true
	for n, s := 1, bufio.NewScanner(f); s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		switch text, comment := strings.CutPrefix(line, "#"); {
		case line == "":
			reason, fresh = "", true
		case comment && fresh:
			reason = strings.TrimSpace(reason + " " + strings.TrimSpace(text))
		case comment:
			reason, fresh = strings.TrimSpace(text), true
		case reason == "":
			return nil, fmt.Errorf("%s:%d: a mutant without a reason", name, n)
		default:
			a.reasons[line], fresh = reason, false
		}
	}
	return a, nil
}

func (a *acceptances) reason(path string, m *mutant) string {
	key := path + "/" + m.key()
	if r := a.reasons[key]; r != "" {
		a.used[key] = true
		return r
	}
	return ""
}

// unused are those that name no mutant of the packages and files that were mutated, sorted.
func (a *acceptances) unused(pkgs []*pkg, files globs) (keys []string) {
	for key := range a.reasons {
		for _, p := range pkgs {
			rest, of := strings.CutPrefix(key, p.path+"/")
			file, _, _ := strings.Cut(rest, ":")
			if of && !a.used[key] && !strings.Contains(file, "/") && files.match(file) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}
