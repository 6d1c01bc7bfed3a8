package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Default is the folder for the state of the bundle with this manifest, which need not exist: below
// $XDG_STATE_HOME (~/.local/state), on Windows and macOS below the user's folder for applications.
// Bundles at different places have different folders, even with the same name.
func Default(manifest, name string) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		var err error
		if base, err = userState(); err != nil {
			return "", fmt.Errorf("there is no folder for state: %w", err)
		}
	}
	path, err := filepath.Abs(manifest)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(base, "wasmactors", name+"-"+hex.EncodeToString(sum[:6])), nil
}

func userState() (string, error) {
	switch runtime.GOOS {
	case "windows", "darwin", "ios", "plan9":
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state"), nil
}
