//go:build !linux

package blob

import "errors"

func mountSmall(string, int) error { return errors.New("not on this system") }

func unmount(string) {}
