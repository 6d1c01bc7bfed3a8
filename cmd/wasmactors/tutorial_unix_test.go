//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// Who follows docs/tutorial.md gets what it says: its files are written, its commands run in order, and what
// they print is compared, numbers and times aside.
func TestTheTutorial(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("builds guests")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the tutorial needs curl")
	}
	g := newGuide(t, t.TempDir())
	g.env = append(g.env, "GOWORK=off", "GOFLAGS=", "WASMACTORS_STATE="+t.TempDir())
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	_, port, _ := net.SplitHostPort(address.String())
	here := strings.NewReplacer("localhost:8080", "localhost:"+port)
	files, commands := 0, 0
	for _, s := range guideSteps(t, "../../docs/tutorial.md", true) {
		if s.file != "" {
			files++
			if err := os.WriteFile(filepath.Join(g.dir, filepath.FromSlash(s.file)), []byte(here.Replace(s.text)), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		commands++
		if dir, ok := strings.CutPrefix(s.command, "cd "); ok {
			g.dir = filepath.Join(g.dir, dir)
			continue
		}
		s.command = here.Replace(s.command)
		for i, line := range s.output {
			s.output[i] = here.Replace(line)
		}
		g.follow(s)
	}
	if files < 10 || commands < 20 {
		t.Errorf("only %d files and %d commands", files, commands)
	}
}
