//go:build unix

package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// Every command of docs/guide/cluster.md is run: three nodes, one of which is killed, and another one drained.
func TestTheGuideToClusters(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	g := newGuide(t, "../..")
	steps := guideSteps(t, "../../docs/guide/cluster.md", false)
	if len(steps) < 12 {
		t.Fatalf("only %d commands", len(steps))
	}
	ports := freePorts(t, 3)
	nodes := map[string]*exec.Cmd{} // by their names
	join := regexp.MustCompile(`--join /tmp/cluster/([a-z]) ?.*&$`)
	again := regexp.MustCompile(`^wasmactors (cluster ls|cluster where|cluster drain|cluster move|ask) `) // no leader, or no owner yet
	for _, s := range steps {
		node := join.FindStringSubmatch(s.command)
		for i, port := range []string{"127.0.0.1:7420", "127.0.0.1:7430", "127.0.0.1:7440"} {
			s.command = strings.ReplaceAll(s.command, port, ports[i])
		}
		s.command = strings.ReplaceAll(s.command, "/tmp/", folderOf(g, "TMPDIR")+"/")
		switch {
		case node != nil:
			nodes[node[1]], _ = g.start(strings.TrimSuffix(s.command, " &") + " --compiler go")
		case strings.HasPrefix(s.command, "kill -9"):
			g.follow(step{command: strings.Replace(s.command, "4711", strconv.Itoa(nodes["c"].Process.Pid), 1)})
		case again.MatchString(s.command):
			g.run(s, true, inAnyOrder)
		default:
			g.follow(s)
		}
	}
	if len(nodes) != 3 {
		t.Errorf("%d nodes", len(nodes))
	}
}

// inAnyOrder is matches for lines in any order: which node has which number is a race.
func inAnyOrder(want []string, got string) bool {
	return matches(sorted(want), strings.Join(sorted(strings.Split(strings.TrimSpace(got), "\n")), "\n"))
}

// sorted are lines without numbers, in their order.
func sorted(lines []string) (to []string) {
	for _, line := range lines {
		to = append(to, alike(line))
	}
	slices.Sort(to)
	return to
}
