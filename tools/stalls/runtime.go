package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// variable has the number of switches among which one stalls. Without it nothing does.
const variable = "STALLS_EVERY"

// changes turn the scheduler of Go 1.24 to 1.26 into one that stalls.
var changes = []struct{ from, to string }{
	{"const randomizeScheduler = raceenabled\n", "const randomizeScheduler = true\n" + stalls},
	{"func main() {\n\tmp := getg().m\n", "func main() {\n\tmp := getg().m\n\tstallsBegin()\n"},
	{"func execute(gp *g, inheritTime bool) {\n", "func execute(gp *g, inheritTime bool) {\n\tstall()\n"},
	{"\t\tready(gp, traceskip, true)\n\t})\n}\n", "\t\tready(gp, traceskip, true)\n\t\tstall()\n\t})\n}\n"},
}

// Half of the stalls take a millisecond at most, the others up to 40.
const stalls = `
var stallEvery uint32

func stallsBegin() {
	for _, digit := range []byte(gogetenv("` + variable + `")) {
		stallEvery = 10*stallEvery + uint32(digit-'0')
	}
}

func stall() {
	if stallEvery == 0 || cheaprandn(stallEvery) != 0 {
		return
	}
	if cheaprandn(2) == 0 {
		usleep(cheaprandn(1000))
		return
	}
	usleep(cheaprandn(40000))
}
`

// stalling returns the scheduler with all changes made to it.
func stalling(scheduler string) (string, error) {
	for _, c := range changes {
		if strings.Count(scheduler, c.from) != 1 {
			return "", fmt.Errorf("the scheduler of this toolchain has no single %q: tools/stalls must learn its version", c.from)
		}
		scheduler = strings.Replace(scheduler, c.from, c.to, 1)
	}
	return scheduler, nil
}

// overlay writes a stalling scheduler into dir, and what tells the go command of it.
func overlay(dir string) (path string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", "proc.go")
	code, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, err := stalling(string(code))
	if err != nil {
		return "", err
	}
	scheduler := filepath.Join(dir, "proc.go")
	if err := os.WriteFile(scheduler, []byte(changed), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: scheduler}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
