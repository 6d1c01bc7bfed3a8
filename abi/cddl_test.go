package abi

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

var (
	cddlComment = regexp.MustCompile(`(?m);.*$`)
	cddlChoice  = regexp.MustCompile(`(?s)(?m)^([a-z_-]+) = &\((.*?)^\)`)
	cddlMember  = regexp.MustCompile(`([a-z_]+): (\d+),`)
	cddlOp      = regexp.MustCompile(`(?m)^op\.([a-z_]+) = (\d+)$`)
	cddlCommand = regexp.MustCompile(`(?m)^([a-z_]+) += \[op\.([a-z_]+)(.*)\]`)
	cddlVersion = regexp.MustCompile(`(?m)^abi-version = (\d+)$`)
)

func readCDDL(t *testing.T) string {
	t.Helper()
	src, err := os.ReadFile("wasmactors.cddl")
	if err != nil {
		t.Fatal(err)
	}
	return cddlComment.ReplaceAllString(string(src), "")
}

func TestCDDLNumbersAreTheConstants(t *testing.T) {
	src := readCDDL(t)
	want := map[string]map[string]int{
		"kind": {}, "op": {}, "failure-kind": {},
		"next-status": {"no_more": 0, "begun": 1},
		"log-level":   {"debug": LogDebug, "info": LogInfo, "warn": LogWarn, "error": LogError},
		"directive": {"resume": DirectiveResume, "restart": DirectiveRestart, "stop": DirectiveStop,
			"escalate": DirectiveEscalate, "suspend": DirectiveSuspend},
	}
	for k := range maxKind + 1 {
		want["kind"][k.String()] = int(k)
	}
	for o := range maxOp + 1 {
		want["op"][o.String()] = int(o)
	}
	for _, k := range FailureKinds() {
		want["failure-kind"][k.String()] = int(k)
	}
	for _, choice := range cddlChoice.FindAllStringSubmatch(src, -1) {
		rest, known := want[choice[1]]
		if !known {
			t.Errorf("the text defines %s, the package does not", choice[1])
			continue
		}
		delete(want, choice[1])
		compareNumbers(t, choice[1], cddlMember.FindAllStringSubmatch(choice[2], -1), rest)
	}
	for name := range want {
		t.Errorf("the text does not define %s", name)
	}
	ops := map[string]int{}
	for o := range maxOp + 1 {
		ops[o.String()] = int(o)
	}
	compareNumbers(t, "op.", cddlOp.FindAllStringSubmatch(src, -1), ops)
	if m := cddlVersion.FindStringSubmatch(src); m == nil || m[1] != strconv.Itoa(Version) {
		t.Errorf("the text is version %v, the package %d", m, Version)
	}
}

func compareNumbers(t *testing.T, what string, members [][]string, want map[string]int) {
	t.Helper()
	for _, m := range members {
		n, known := want[m[1]]
		if delete(want, m[1]); !known || strconv.Itoa(n) != m[2] {
			t.Errorf("%s: the text has %s = %s, the package %d (%v)", what, m[1], m[2], n, known)
		}
	}
	for name, n := range want {
		t.Errorf("%s: the text lacks %s = %d", what, name, n)
	}
}

func TestCDDLArities(t *testing.T) {
	seen := 0
	for _, m := range cddlCommand.FindAllStringSubmatch(readCDDL(t), -1) {
		seen++
		if m[1] != m[2] {
			t.Errorf("the command %s has the operation %s", m[1], m[2])
		}
		n := uint64(1)
		for _, c := range m[3] {
			if c == ',' {
				n++
			}
		}
		for o := range maxOp + 1 {
			if o.String() == m[1] && arity[o] != n {
				t.Errorf("%s has %d elements in the text, %d in the package", m[1], n, arity[o])
			}
		}
	}
	if seen != len(arity) {
		t.Errorf("%d commands in the text, %d in the package", seen, len(arity))
	}
}

// Every bound that the text repeats must be the constant.
func TestCDDLBounds(t *testing.T) {
	src := readCDDL(t)
	for pattern, want := range map[string]int64{
		`headers = \{ 0\*(\d+)`:                     MaxHeaders,
		`header-key = tstr \.size \(0\.\.(\d+)\)`:   MaxHeaderKey,
		`header-value = tstr \.size \(0\.\.(\d+)\)`: MaxHeaderValue,
		`"seed" => bstr \.size (\d+)`:               SeedSize,
		`"types" => \[1\*(\d+) `:                    MaxTypes,
		`"needs" => \[0\*(\d+) `:                    MaxNeeds,
		`"diagrams" => \{ 0\*(\d+) `:                MaxTypes,
		`"silent" => \[0\*(\d+) `:                   MaxTypes,
		`"saves" => \[0\*(\d+) `:                    MaxTypes,
		`(?m)^diagram = tstr \.size \(0\.\.(\d+)\)`: MaxDiagram,
		`"refkey" => bstr \.size (\d+)`:             RefKeySize,
		`"stack" => \[0\*(\d+) `:                    MaxFrames,
		`(?m)^reason = tstr \.size \(0\.\.(\d+)\)`:  MaxReason,
		`(?m)^label = tstr \.size \(0\.\.(\d+)\)`:   MaxPath,
		`(?m)^path = tstr \.size \(1\.\.(\d+)\)`:    MaxPath,
		`(?m)^name = tstr .*\{1,(\d+)\}`:            MaxName,
		`(?m)^type-name = tstr .*\{1,(\d+)\}`:       MaxTypeName,
		`"services" => \{ 1\*(\d+) `:                MaxServices,
		`(?m)^identities = \[total: 0\.\.(\d+)`:     mostCounted,
		`(?m)^identities = .*\[0\*(\d+) `:           MaxIdentities,
		`(?m)^service-name = tstr .*\{1,(\d+)\}`:    MaxServiceName,
		`(?m)^duration = 0\.\.(\d+)`:                MaxDuration,
		`(?m)^ask-timeout = (\d+)`:                  MinAskTimeout,
		`(?m)^ask-timeout = \d+\.\.(\d+)`:           MaxAskTimeout,
		`(?m)^receive-timeout = (\d+)`:              MinReceiveTimeout,
		`(?m)^receive-timeout = \d+\.\.(\d+)`:       MaxDuration,
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(src)
		if m == nil || m[1] != strconv.FormatInt(want, 10) {
			t.Errorf("%s: the text has %v, the package %d", pattern, m, want)
		}
	}
}
